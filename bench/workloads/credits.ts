import { awake } from '../lib/awake.ts';
import { credentials } from '../lib/credentials.ts';
import { CALLERS, KIB, MANY, own, withGateway, within } from '../lib/measured.ts';
import { openPhones, type Phone, post } from '../lib/phones.ts';
import type { RunningServer } from '../lib/process.ts';
import { number, type Section, times } from '../lib/section.ts';
import type { Subscriber } from '../lib/sockets.ts';
import { percentile } from '../lib/stats.ts';
import { startStub } from '../lib/stub.ts';
import { until } from '../lib/until.ts';
import { MONEY_IN, moneyIn, moneyInPath } from '../lib/webhooks.ts';
import { CLIENT_ID } from '../upstream/data.ts';

/** A server does not say when a subscription has begun: events are sent until one has reached everybody. */
const reached =
  (emit: () => Promise<void>) =>
  async (subscribers: readonly Subscriber[]): Promise<void> => {
    for (let attempt = 0; attempt < 10; attempt += 1) {
      const had = subscribers.map(({ received }) => received);
      await emit();
      const all = () => subscribers.every(({ received }, index) => received > (had[index] ?? 0));
      if (
        await until(all, 5_000).then(
          () => true,
          () => false,
        )
      )
        return;
    }
    throw new Error('An event did not reach every phone.');
  };

interface ToAll {
  readonly name: string;
  readonly count: number;
  readonly bytesEach: number;
  readonly wallMs: number;
  readonly cpuMs: number;
}

const TO_ALL = 20;
/** How often the gateway and raw `ws` are measured, in turns: a machine may be half as fast again a minute later. */
const TURNS = 2;

/** One event for every phone, some times over. */
async function toAll(
  server: RunningServer,
  count: number,
  emit: (payload: string) => { readonly path: string; readonly body: string },
  payload: string,
): Promise<ToAll & { readonly payload: string }> {
  const tokens = credentials(count + MANY);
  const send = () => {
    const { path, body } = emit(payload);
    return post(server, path, body);
  };
  const phone = (index: number): Phone => ({ authorization: tokens[index] ?? '', query: MONEY_IN });
  const phones = await openPhones(server, count, phone, reached(send));
  const wallMs: number[] = [];
  const cpuBefore = server.cpuMs();
  for (let event = 0; event < TO_ALL; event += 1) {
    const had = phones.subscribers.map(({ received }) => received);
    const posted = performance.now();
    const answered = send();
    await awake(() =>
      until(
        () => phones.subscribers.every(({ received }, index) => received > (had[index] ?? 0)),
        30_000,
        'an event for all phones',
      ),
    );
    wallMs.push(performance.now() - posted);
    await answered;
  }
  const cpuMs = (server.cpuMs() - cpuBefore) / TO_ALL;
  phones.close();
  return {
    name: server.name,
    count,
    bytesEach: phones.bytesEach,
    wallMs: percentile(wallMs, 0.5),
    cpuMs,
    payload: phones.last(),
  };
}

function meanOf(turns: readonly ToAll[]): ToAll {
  const [first] = turns;
  if (first === undefined) throw new Error('Nothing was measured.');
  const mean = (of: (turn: ToAll) => number) => turns.reduce((sum, turn) => sum + of(turn), 0) / turns.length;
  return {
    ...first,
    bytesEach: mean((turn) => turn.bytesEach),
    wallMs: mean((turn) => turn.wallMs),
    cpuMs: mean((turn) => turn.cpuMs),
  };
}

/** W10: phones with a token each that all hear of each credit. */
export async function w10(): Promise<Section> {
  await using stub = await startStub();
  const found: ToAll[] = [];
  for (const count of [CALLERS, 10_000]) {
    const emit = (body: string) => ({ path: '/emit', body });
    const [gateways, raws]: [ToAll[], ToAll[]] = [[], []];
    let payload = '';
    for (let turn = 0; turn < TURNS; turn += 1) {
      const gateway = await withGateway(stub, {}, (server) =>
        toAll(server, count, () => ({ path: moneyInPath(CLIENT_ID), body: moneyIn(CLIENT_ID).body }), ''),
      );
      payload = gateway.payload;
      gateways.push(gateway);
      raws.push(
        await within(own('raw ws', 'servers/raw-ws.ts'), (server) => toAll(server, count, emit, payload)),
      );
    }
    const stock = await within(own('graphql-ws', 'servers/graphql-ws.ts', stub.url), (server) =>
      toAll(server, count, emit, payload),
    );
    found.push(meanOf(gateways), meanOf(raws), stock);
  }
  const rawOf = ({ count }: ToAll): ToAll | undefined =>
    found.find((other) => other.name === 'raw ws' && other.count === count);
  const ratio = (one: ToAll): number => one.cpuMs / (rawOf(one)?.cpuMs ?? Number.NaN);
  return {
    title: 'W10, a credit for every phone',
    method: `\`moneyIn\` of one merchant, each phone with a token of its own; ${TO_ALL} events one by one; the gateway and raw ws ${TURNS} times in turn. All servers send the same bytes.`,
    columns: ['server', 'phones', 'KiB / phone', 'one event to all, ms', 'CPU ms / event', '× raw ws'],
    rows: found.map((one) => [
      one.name,
      number(one.count),
      number(one.bytesEach / KIB),
      number(one.wallMs),
      number(one.cpuMs),
      times(ratio(one)),
    ]),
    goals: found
      .filter(({ name }) => name === 'Pasarela')
      .flatMap((one) => [
        {
          work: 'W10',
          what: `one event to ${number(one.count)} tokens, CPU × raw ws`,
          limit: 1.5,
          reached: ratio(one),
          unit: '',
        },
        {
          work: 'W10',
          what: `memory a phone, ${number(one.count)} tokens`,
          limit: 12,
          reached: one.bytesEach / KIB,
          unit: ' KiB',
        },
      ]),
    bars: {
      title: 'W10: CPU ms for one event to 10,000 phones with a token each',
      bars: found
        .filter(({ count }) => count === 10_000)
        .map(({ name, cpuMs }) => ({ label: name, value: cpuMs })),
    },
  };
}
