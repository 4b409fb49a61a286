import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Account } from '../../../src/upstream/accounts.ts';
import { json } from '../../helpers/http-stub.ts';

/** How the service pages a list. */
export interface Paging {
  readonly firstPage: 0 | 1;
  readonly defaultSize: number;
  /** The largest page; what is asked beyond it comes in this size. */
  readonly cap: number;
  /** `pages`: page and size are honoured. `own size`: the page is, the size is the default one. `whole`: neither, all comes. */
  readonly honours: 'pages' | 'own size' | 'whole';
}

/** What happens to the list right before an answer, or to that answer. `at` and `by` are folded into what there is. */
export type Change =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'append' | 'prepend' | 'reverse' | 'replace first by last' }
  | { readonly kind: 'insert' | 'remove' | 'update' | 'rotate' | 'move to head'; readonly at: number }
  | { readonly kind: 'cap'; readonly at: number }
  | { readonly kind: 'toggle paging' }
  | { readonly kind: 'lie'; readonly by: number }
  | { readonly kind: 'repeat'; readonly at: number }
  | { readonly kind: 'fail' | 'garbage' };

/** The list as it was after one of its changes. */
export type Snapshot = readonly Account[];

/** A list that changes as a script says, before each of its answers, and remembers what it was. */
export class ChangingList {
  readonly snapshots: Snapshot[];
  /** Answers so far. */
  answers = 0;
  /** Whether an answer was not true, or none. */
  hasErred = false;
  #paging: Paging;
  readonly #script: readonly Change[];
  readonly #owners: number;
  #made = 0;

  constructor(size: number, owners: number, paging: Paging, script: readonly Change[]) {
    this.#owners = owners;
    this.#paging = paging;
    this.#script = script;
    this.snapshots = [Array.from({ length: size }, () => this.#make())];
  }

  get now(): Snapshot {
    return this.snapshots.at(-1) ?? [];
  }

  #make(): Account {
    const number = this.#made;
    this.#made += 1;
    return {
      id: `account-${number}`,
      instrumentId: `instrument-${number}`,
      clientId: 'client',
      clientBankAdapterId: 'adapter',
      accountId: `base-${number}`,
      ownerId: `owner-${number % this.#owners}`,
      accountNumber: String(1_000 + number),
      clabeNumber: String(5_000 + number),
      availableBalance: '0',
      accountType: 'PRIVATE_ACCOUNT',
      accountStatus: 'ACTIVE',
    };
  }

  #change(change: Change): void {
    const list = [...this.now];
    const at = 'at' in change && list.length > 0 ? change.at % list.length : 0;
    switch (change.kind) {
      case 'append':
        list.push(this.#make());
        break;
      case 'prepend':
        list.unshift(this.#make());
        break;
      case 'insert':
        list.splice(at, 0, this.#make());
        break;
      case 'remove':
        list.splice(at, 1);
        break;
      case 'replace first by last':
        list.shift();
        list.push(this.#make());
        break;
      case 'update':
        list.splice(at, 1, ...list.slice(at, at + 1).map(updated));
        break;
      case 'rotate':
        list.push(...list.splice(0, at));
        break;
      case 'move to head':
        list.unshift(...list.splice(at, 1));
        break;
      case 'reverse':
        list.reverse();
        break;
      case 'cap':
        this.#paging = { ...this.#paging, cap: 2 + (change.at % 12) };
        return;
      case 'toggle paging':
        this.#paging = { ...this.#paging, honours: this.#paging.honours === 'whole' ? 'pages' : 'whole' };
        return;
      default:
        return;
    }
    this.snapshots.push(list);
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    const change = this.#script[this.answers] ?? { kind: 'nothing' };
    this.answers += 1;
    if (change.kind === 'fail' || change.kind === 'garbage') {
      this.hasErred = true;
      if (change.kind === 'fail') json(response, { message: 'not now' }, 400);
      else response.end('<html>');
      return;
    }
    this.#change(change);
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const { firstPage, defaultSize, cap, honours } = this.#paging;
    const all = this.now;
    const asked = Number(query.get('per_page') ?? defaultSize);
    const size =
      honours === 'whole'
        ? Math.max(1, all.length)
        : Math.min(cap, honours === 'pages' ? asked : defaultSize);
    const page = honours === 'whole' ? firstPage : Number(query.get('page') ?? firstPage);
    const start = (page - firstPage) * size;
    let data = all.slice(start, start + size);
    let total = all.length;
    if (change.kind === 'repeat' && data.length > 1) {
      // An item stands twice on the page, and another is left out.
      this.hasErred = true;
      data = data.with(
        change.at % data.length,
        data[(change.at + 1) % data.length] ?? updated(data[0] ?? this.#make()),
      );
    }
    // A total that is what happens to be shown cannot be told from a true one.
    if (change.kind === 'lie' && total + change.by >= 0 && total + change.by !== data.length) {
      this.hasErred = true;
      total += change.by;
    }
    json(response, { data, currentPage: page, perPage: size, totalItem: total });
  }
}

const updated = (account: Account): Account => ({
  ...account,
  availableBalance: String(Number(account.availableBalance) + 1),
});
