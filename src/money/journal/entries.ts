import { Lru } from '../../common/lru.ts';
import { idOf } from '../payment-reads.ts';
import type { OrderSummary } from '../record.ts';
import { type JournalStep, partsOf, type ReadLine, readLine } from './journal.ts';
import type { JournalLine, JournalStore } from './store.ts';

/** A line of the journal in the form for people and their programs: every entry repeats what its payment asked for. */
export interface JournalEntry {
  /** Time of the line, in ms since the epoch, by the clock of the store. */
  readonly at: number;
  readonly clientId: string;
  readonly step: JournalStep;
  /** `Payment.id`; null if the line that began the payment has been cut off. */
  readonly paymentId: string | null;
  /** Null likewise. */
  readonly asked: OrderSummary | null;
  readonly requestId: string | null;
  readonly transactionId: string | null;
  /** HTTP status of the service's answer; null where it was settled without one. */
  readonly status: number | null;
  /** `answer` where the service has answered, to a request or its repeat; `evidence` where it was found without; null where nothing was told. */
  readonly by: 'answer' | 'evidence' | null;
  /** The code of a refusal. */
  readonly code: string | null;
  /** The line as it is stored, from which `verifyJournal` checks the chain. */
  readonly line: JournalLine;
}

/** How many first lines are remembered while later lines of their payments are read. */
const REMEMBERED = 50_000;

interface Beginning {
  readonly paymentId: string;
  readonly asked: OrderSummary | undefined;
}

interface EntrySource {
  readonly journal: Pick<JournalStore, 'lines'>;
  idKey(clientId: string): Promise<Buffer>;
}

/** Makes entries of the lines of one client's journal. */
export class JournalEntries {
  readonly #source: EntrySource;
  readonly #clientId: string;
  readonly #begun = new Lru<Beginning>(REMEMBERED);
  #key: Buffer | undefined;

  constructor(source: EntrySource, clientId: string) {
    this.#source = source;
    this.#clientId = clientId;
  }

  /** @param lines in their order */
  async of(lines: readonly JournalLine[]): Promise<JournalEntry[]> {
    this.#key ??= await this.#source.idKey(this.#clientId);
    const read = lines.map((line) => ({ line, told: readLine(line.text) }));
    for (const { line, told } of read) if (told?.step === 'asked') this.#remember(line.id, told);
    await this.#look(read.flatMap(({ told }) => told?.begun ?? []));
    return read.flatMap(({ line, told }) => (told === undefined ? [] : [this.#entry(line, told)]));
  }

  /** Reads the first lines of payments that began in another part of the journal. */
  async #look(ids: readonly string[]): Promise<void> {
    const missing = [...new Set(ids)].filter((id) => !this.#begun.has(id));
    if (missing.length === 0) return;
    for (const line of await this.#source.journal.lines(this.#clientId, missing)) {
      const told = line === undefined ? undefined : readLine(line.text);
      if (line !== undefined && told?.step === 'asked') this.#remember(line.id, told);
    }
  }

  #remember(id: string, told: ReadLine): void {
    this.#begun.set(id, { paymentId: this.#idOf(told.hash ?? ''), asked: told.asked });
  }

  #entry(line: JournalLine, told: ReadLine): JournalEntry {
    const begun = this.#begun.get(told.begun ?? line.id);
    const ownId = told.hash === undefined ? null : this.#idOf(told.hash);
    return {
      at: partsOf(line.id)[0],
      clientId: this.#clientId,
      step: told.step,
      paymentId: begun?.paymentId ?? ownId,
      asked: begun?.asked ?? null,
      requestId: told.requestId || null,
      transactionId: told.transactionId ?? null,
      status: told.status ?? null,
      by: told.by ?? (told.status === undefined ? null : 'answer'),
      code: told.code ?? null,
      line,
    };
  }

  #idOf(hash: string): string {
    if (this.#key === undefined) throw new TypeError('the key is read first');
    return idOf(this.#key, hash);
  }
}
