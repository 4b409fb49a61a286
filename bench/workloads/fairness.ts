import { startContender } from '../lib/contenders.ts';
import { credentials } from '../lib/credentials.ts';
import { client, join, PAYMENT_DONE, payment, transaction, type Work } from '../lib/documents.ts';
import { load } from '../lib/load.ts';
import { number, type Section } from '../lib/section.ts';
import { percentile } from '../lib/stats.ts';
import { startStub } from '../lib/stub.ts';

const LATENCY_MS = 50;
const CONNECTIONS = 400;
const REQUESTS = 300;
const [GREEDY = '', OTHER = ''] = credentials(2);

/** One caller with 400 connections of joins, and what becomes of another's reads and payments. */
export async function w15(): Promise<Section> {
  await using stub = await startStub();
  await stub.configure({ latencyMs: LATENCY_MS });
  await using contender = await startContender('Pasarela', stub.url);
  const ask = (work: () => Work, authorization: string, requests: number, connections: number) =>
    load({
      url: contender.server.url,
      requests,
      connections,
      shot: () => contender.shot(work(), authorization),
      check: ({ text }) => {
        const isWrong = text.includes('"errors"') || (work === payment && !text.includes(PAYMENT_DONE));
        if (authorization === OTHER && isWrong) throw new Error(text.slice(0, 300));
      },
    });
  const others = async () => {
    const read = await ask(() => transaction, OTHER, REQUESTS, 2);
    const paid = await ask(payment, OTHER, REQUESTS, 2);
    return { read: percentile(read.latenciesMs, 0.95), paid: percentile(paid.latenciesMs, 0.99) };
  };
  for (const authorization of [GREEDY, OTHER]) await ask(() => client, authorization, 3, 1);
  await ask(() => transaction, OTHER, 100, 2);
  await ask(payment, OTHER, 100, 2);
  // Forty different joins: ten connections share each at a time.
  let joins = 0;
  const greed = () => {
    joins += 1;
    return join(60 + (joins % 40));
  };
  await ask(greed, GREEDY, 100, 8);

  const alone = await others();
  let isOver = false;
  let served = 0;
  const greedy = (async () => {
    while (!isOver) {
      await ask(greed, GREEDY, CONNECTIONS * 2, CONNECTIONS);
      served += CONNECTIONS * 2;
    }
  })();
  const beside = await others();
  isOver = true;
  await greedy;
  return {
    title: 'W15, beside one caller with 400 connections',
    method: `One caller asks for joins of 60 to 99 instruments over ${CONNECTIONS} connections; another reads transactions and pays, two at a time. ${LATENCY_MS} ms a REST call.`,
    columns: ['', 'alone, ms', 'beside it, ms', '×'],
    rows: [
      [
        'transaction(id), p95',
        number(alone.read),
        number(beside.read),
        (beside.read / alone.read).toFixed(2),
      ],
      ['a payment, p99', number(alone.paid), number(beside.paid), (beside.paid / alone.paid).toFixed(2)],
      ['joins answered meanwhile', '', number(served), ''],
    ],
    goals: [
      {
        work: 'W15',
        what: 'transaction(id), p95, × alone',
        limit: 1.5,
        reached: beside.read / alone.read,
        unit: '',
      },
      {
        work: 'W15',
        what: 'a payment, p99, × alone',
        limit: 1.5,
        reached: beside.paid / alone.paid,
        unit: '',
      },
    ],
  };
}
