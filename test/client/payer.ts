import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import { intentStore, type KeyValues, pay, typed } from '../../packages/client/src/index.ts';

/** An app that pays, as a process of its own that can be killed. It ends by itself once each payment has ended. */
export interface PayerOptions {
  readonly graphql: string;
  readonly token: string;
  /** A folder for its intents, and for the file of how they ended. */
  readonly work: string;
  readonly payments: readonly {
    readonly tag: string;
    readonly document: string;
    readonly input: Readonly<Record<string, unknown>>;
  }[];
  /** Whether an unclear payment is told of as it is, rather than asked about until it is clear. */
  readonly isLast: boolean;
}

/** A line of `ended.jsonl`: what the app has told the person. */
export interface Ended {
  readonly tag: string;
  readonly status: 'done' | 'refused' | 'unknown';
  readonly safeToRetry: boolean;
  readonly transactionId: string | undefined;
}

interface Result {
  readonly result: { readonly __typename: string; readonly moved?: { readonly id: string } | null };
}

const { graphql, token, work, payments, isLast } = JSON.parse(process.argv[2] ?? '') as PayerOptions;
const place = { url: graphql, token: () => token };
const sources = [createSocket(place), createFetch(place)] as const;
const ended = join(work, 'ended.jsonl');
const known = existsSync(ended) ? readFileSync(ended, 'utf8') : '';

/** A value for each key in a file of its own, written whole or not at all. */
const files: KeyValues = {
  getItem(key) {
    const file = join(work, `${key}.json`);
    return existsSync(file) ? readFileSync(file, 'utf8') : null;
  },
  setItem(key, value) {
    const file = join(work, `${key}.json`);
    writeFileSync(`${file}.new`, value);
    renameSync(`${file}.new`, file);
  },
};

/** The button is pressed twice at once, and each press has a store of its own. */
async function payUntilClear(payment: PayerOptions['payments'][number], index: number) {
  if (known.includes(`"tag":"${payment.tag}","status":"done"`)) return;
  await Promise.all([press(payment, index), press(payment, index + 1)]);
}

async function press({ tag, document, input }: PayerOptions['payments'][number], index: number) {
  const store = intentStore(files, tag.replaceAll(' ', '-'));
  const source = sources[index % 2] ?? sources[0];
  const mutation = typed<
    Result,
    { readonly input: Record<string, unknown> & { readonly idempotencyKey: string } }
  >(document);
  for (;;) {
    const outcome = await pay(source, mutation, input, { store, patienceMs: 2_000, answerMs: 4_000 });
    const line: Ended = {
      tag,
      status: outcome.status,
      safeToRetry: outcome.status === 'unknown' && outcome.safeToRetry,
      transactionId: outcome.status === 'done' ? outcome.result.moved?.id : undefined,
    };
    appendFileSync(ended, `${JSON.stringify(line)}\n`);
    await outcome.acknowledge();
    if (outcome.status !== 'unknown' || !outcome.safeToRetry || isLast) return;
  }
}

process.stdout.write('It begins to pay.\n');
await Promise.all(payments.map(payUntilClear));
process.exit(0);
