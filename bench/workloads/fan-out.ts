import { request } from 'undici';
import { awake } from '../lib/awake.ts';
import { gatewayProgram, temporaryFolder } from '../lib/contenders.ts';
import { credentials } from '../lib/credentials.ts';
import { COLLECTOR, settledRss } from '../lib/memory.ts';
import { type ServerProgram, startServer } from '../lib/process.ts';
import { number, type Section, spread, times } from '../lib/section.ts';
import { type Subscriber, subscribeAll } from '../lib/sockets.ts';
import { type Spread, spreadOf } from '../lib/stats.ts';
import { programFile, startStub } from '../lib/stub.ts';
import { until } from '../lib/until.ts';
import { MONEY_IN, moneyIn, moneyInPath } from '../lib/webhooks.ts';
import { CLIENT_ID } from '../upstream/data.ts';

const SOCKETS = 10_000;
const WARM_UP_SOCKETS = 500;
const EVENTS = 5;
const ROUNDS = 2;
const EVENT_TIMEOUT_MS = 30_000;

/** How one event is put into a server; the payload is what its subscribers are to be sent. */
type Emit = (payload: string) => { readonly path: string; readonly body: string };

interface Fan {
  readonly name: string;
  readonly program: ServerProgram;
  readonly emit: Emit;
}

interface Found {
  readonly bytesPerSocket: number;
  readonly wallMs: readonly number[];
  readonly cpuMs: readonly number[];
}

export async function w4(): Promise<Section> {
  await using stub = await startStub();
  await using folder = await temporaryFolder();
  const emitPayload: Emit = (payload) => ({ path: '/emit', body: payload });
  const own = (name: string, file: string): Fan => ({
    name,
    program: { name, args: [...COLLECTOR, programFile(file)] },
    emit: emitPayload,
  });
  const fans: readonly Fan[] = [
    {
      name: 'Pasarela',
      program: gatewayProgram({ upstreamUrl: stub.url, dataDir: folder.path, nodeOptions: COLLECTOR }),
      emit: () => ({ path: moneyInPath(CLIENT_ID), body: moneyIn(CLIENT_ID).body }),
    },
    own('raw ws', 'servers/raw-ws.ts'),
    own('graphql-ws', 'servers/graphql-ws.ts'),
  ];
  // The first to run is the gateway: the others send the bytes that its subscribers got.
  let payload = '';
  const found = new Map<string, Found[]>(fans.map(({ name }) => [name, []]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const fan of fans) {
      const result = await fanOut(fan, payload, (seen) => {
        payload ||= seen;
      });
      found.get(fan.name)?.push(result);
    }
  }

  const rows = fans.map(({ name }) => {
    const results = found.get(name) ?? [];
    return {
      name,
      bytes: spreadOf(results.map(({ bytesPerSocket }) => bytesPerSocket)),
      wallMs: spreadOf(results.flatMap(({ wallMs }) => wallMs)),
      cpuMs: spreadOf(results.flatMap(({ cpuMs }) => cpuMs)),
    };
  });
  const ratio = (field: 'bytes' | 'wallMs', to: string): number => {
    const value = (name: string) => rows.find((row) => row.name === name)?.[field].median ?? Number.NaN;
    return value('Pasarela') / value(to);
  };
  const kilobytes = ({ median, min, max }: Spread): Spread => ({
    median: median / 1024,
    min: min / 1024,
    max: max / 1024,
  });
  return {
    title: 'W4, fan-out',
    method: `${number(SOCKETS)} sockets of one credential on \`moneyIn\`, then ${EVENTS} events one by one, each timed from the POST until the last socket has it. Memory is resident memory over that before, after a garbage collection of the server. All servers send the same bytes.`,
    columns: ['server', 'KiB / idle socket', 'one event to all, ms', 'CPU ms / event', '× raw ws'],
    rows: rows.map(({ name, bytes, wallMs, cpuMs }) => [
      name,
      spread(kilobytes(bytes)),
      spread(wallMs),
      spread(cpuMs),
      times(wallMs.median / (rows.find((row) => row.name === 'raw ws')?.wallMs.median ?? Number.NaN)),
    ]),
    goals: [
      {
        work: 'W4',
        what: 'memory a socket, × graphql-ws',
        limit: 0.6,
        reached: ratio('bytes', 'graphql-ws'),
        unit: '',
      },
      {
        work: 'W4',
        what: 'one event to all, × raw ws',
        limit: 1.5,
        reached: ratio('wallMs', 'raw ws'),
        unit: '',
      },
    ],
    bars: {
      title: `W4: KiB per idle socket`,
      bars: rows.map(({ name, bytes }) => ({ label: name, value: bytes.median / 1024 })),
    },
  };
}

async function fanOut(fan: Fan, payload: string, onPayload: (payload: string) => void): Promise<Found> {
  await using server = await startServer(fan.program);
  const [authorization = ''] = credentials(1);
  let arrived = 0;
  const open = (count: number): Promise<readonly Subscriber[]> =>
    subscribeAll(count, () => ({
      url: server.url,
      authorization,
      query: MONEY_IN,
      onNext: (seen) => {
        arrived += 1;
        onPayload(seen);
      },
    }));
  const emit = async (): Promise<void> => {
    const { path, body } = fan.emit(payload);
    const answer = await request(`${server.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    await answer.body.dump();
    if (answer.statusCode !== 201) throw new Error(`${fan.name} answered an event with ${answer.statusCode}`);
  };
  const arrivals = (count: number, what: string) =>
    until(() => arrived >= count, EVENT_TIMEOUT_MS, `${fan.name}: ${what}, of which ${arrived} were seen`);

  const early = await open(WARM_UP_SOCKETS);
  await reachAll(early, emit);
  for (const subscriber of early) subscriber.close();
  const before = await settledRss(server);
  const subscribers = await open(SOCKETS);
  const bytesPerSocket = ((await settledRss(server)) - before) / SOCKETS;
  await reachAll(subscribers, emit);

  const wallMs: number[] = [];
  const cpuMs: number[] = [];
  for (let event = 0; event < EVENTS; event += 1) {
    arrived = 0;
    const cpuBefore = server.cpuMs();
    const start = performance.now();
    const emitted = emit();
    await awake(() => arrivals(SOCKETS, `${SOCKETS} arrivals`));
    wallMs.push(performance.now() - start);
    await emitted;
    cpuMs.push(server.cpuMs() - cpuBefore);
  }
  for (const subscriber of subscribers) subscriber.close();
  return { bytesPerSocket, wallMs, cpuMs };
}

/** A server does not say when a subscription has begun: events are sent until one has reached everybody. */
async function reachAll(subscribers: readonly Subscriber[], emit: () => Promise<void>): Promise<void> {
  for (const started = performance.now(); performance.now() - started < EVENT_TIMEOUT_MS; ) {
    for (const subscriber of subscribers) subscriber.received = 0;
    await emit();
    const all = () => subscribers.every(({ received }) => received > 0);
    if (
      await until(all, 3_000).then(
        () => true,
        () => false,
      )
    )
      return;
  }
  throw new Error('An event did not reach every subscriber.');
}
