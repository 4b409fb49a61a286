import { setTimeout as pause } from 'node:timers/promises';
import { request } from 'undici';
import { credentials } from '../lib/credentials.ts';
import { transaction } from '../lib/documents.ts';
import { MANY, p95, transactionOf, withGateway } from '../lib/measured.ts';
import type { RunningServer } from '../lib/process.ts';
import { number, type Section } from '../lib/section.ts';
import { subscribe } from '../lib/sockets.ts';
import { percentile } from '../lib/stats.ts';
import { startStub } from '../lib/stub.ts';
import { until } from '../lib/until.ts';
import { CEP_STATUS } from '../lib/webhooks.ts';

const LATENCY_MS = 50;
/** Over so long phones come back, in milliseconds: clients wait for a random time before they connect again. */
const COME_BACK_MS = 8_000;
const ALONE = 100;

/** W12: phones that come back to a gateway that has just started, while somebody else asks for something. */
export async function w12(): Promise<Section> {
  await using stub = await startStub();
  await stub.configure({ latencyMs: LATENCY_MS });
  const [other = '', ...tokens] = credentials(MANY + 1);
  const alone = await withGateway(stub, {}, async (server) => {
    const first = await asking(server, other, () => false, ALONE);
    return p95([...first, ...(await asking(server, other, () => false, ALONE))].slice(-ALONE));
  });
  const found = await withGateway(stub, {}, async (server) => {
    let back = 0;
    let refused = 0;
    const firstAnswerMs: number[] = [];
    const started = performance.now();
    const cpuBefore = server.cpuMs();
    const meanwhile = asking(server, other, () => back < MANY, 0);
    // It is awaited at the end; what fails before that is told first.
    meanwhile.catch(() => undefined);
    const phones = await Promise.all(
      tokens.map(async (authorization, index) => {
        await pause((index / MANY) * COME_BACK_MS);
        const connecting = performance.now();
        const variables = { id: transactionOf(index) };
        const onNext = () => {
          back += 1;
          firstAnswerMs.push(performance.now() - connecting);
        };
        const phone = { url: server.url, authorization, query: CEP_STATUS, variables, onNext };
        for (;;) {
          const subscriber = await subscribe(phone).catch(() => undefined);
          if (subscriber !== undefined) return subscriber;
          // As a client does whom a gateway at its limit has cut off.
          refused += 1;
          await pause(Math.random() * 1_000);
        }
      }),
    );
    await until(() => back >= MANY, 60_000, 'an answer for each phone');
    const wallMs = performance.now() - started;
    const others = await meanwhile;
    for (const phone of phones) phone.close();
    return { wallMs, firstAnswerMs, others, refused, cpuEachMs: (server.cpuMs() - cpuBefore) / MANY };
  });
  const work = 'W12';
  const [p99, othersP95] = [percentile(found.firstAnswerMs, 0.99), p95(found.others)];
  return {
    title: 'W12, phones that come back',
    method: `${number(MANY)} phones, each with a token and a receipt of its own, connect within ${COME_BACK_MS / 1_000} s to a gateway that has just started, in front of an upstream with ${LATENCY_MS} ms of latency. Meanwhile another caller asks for one transaction after another.`,
    columns: [
      'connections lost on the way',
      'all have an answer after, s',
      'first answer, p50 ms',
      'p99 ms',
      'CPU ms / phone',
      'another caller, p95 ms',
      'the same alone, ms',
    ],
    rows: [
      [
        number(found.refused),
        number(found.wallMs / 1_000),
        number(percentile(found.firstAnswerMs, 0.5)),
        number(p99),
        number(found.cpuEachMs),
        number(othersP95),
        number(alone),
      ],
    ],
    goals: [
      {
        work,
        what: `${number(MANY)} phones have an answer`,
        limit: 10,
        reached: found.wallMs / 1_000,
        unit: ' s',
      },
      { work, what: 'another caller meanwhile, p95 × alone', limit: 2, reached: othersP95 / alone, unit: '' },
    ],
  };
}

/** One caller asks for one thing after another, for as long as it should, and so often at least; milliseconds each. */
async function asking(
  server: RunningServer,
  authorization: string,
  goesOn: () => boolean,
  atLeast: number,
): Promise<number[]> {
  const { query, variables } = transaction;
  const taken: number[] = [];
  while (goesOn() || taken.length < atLeast) {
    const asked = performance.now();
    const { statusCode, body } = await request(`${server.url}/graphql`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    });
    await body.dump();
    if (statusCode !== 200) throw new Error(`A query was answered with ${statusCode}.`);
    taken.push(performance.now() - asked);
  }
  return taken;
}
