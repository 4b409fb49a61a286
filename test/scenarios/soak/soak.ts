import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { creditTo, headOf, type Member, startFleet } from '../../helpers/fleet.ts';
import { control } from '../../helpers/gateway.ts';
import { randomFrom } from '../../helpers/random.ts';
import { type ReaderOptions, startReaders } from '../../helpers/reader.ts';
import { callerToken, serviceEnvironment } from '../../helpers/service.ts';
import { startChaos } from './chaos.ts';
import { Tally } from './tally.ts';

const USAGE = `npm run soak -- [--minutes 3] [--readers 40] [--rate 30] [--seed 1]

Two gateways on one Redis, with readers over WebSocket and SSE that lose their connections at random, and webhooks at a
steady rate (per second), one in ten delivered twice, while Redis and one of the gateways are killed, stopped and restarted.
Each reader has a token of its own; for each four of them one more is narrowed to a customer, and hears of its credits alone.
Ends with 1 where an event is lost, repeated or misplaced, or the gateway that stayed holds more than it began with.`;

const REPORT_EVERY_MS = 5_000;
/** The share of webhooks that are delivered again, and of readers that lose their connection within a second. */
const DUPLICATES = 0.1;
const DROPS = 0.02;
/** How long everything answered may take to reach everybody at the end, and what was held to be let go. */
const SETTLED_WITHIN_MS = 60_000;
const KEPT_ALIVE_MS = 7_000;
const HEAP_SLACK_BYTES = 16 * 2 ** 20;

const options = readOptions();
const random = randomFrom(options.seed);
const lifetimeSeconds = Math.ceil(options.minutes * 60 + 240);
const probe = `--import=${fileURLToPath(new URL('probe.ts', import.meta.url))}`;

await using fleet = await startFleet(lifetimeSeconds);
const service = serviceEnvironment(fleet.sandbox);
const steady = await fleet.start({ NODE_OPTIONS: probe, ...service });
let victim = await fleet.start(service);
const { customerIds }: { customerIds: readonly string[] } = await control(fleet.sandbox, 'GET', '/sandbox');

/** Readers with a token each that lasts as long as everything here. */
async function startCallers(count: number, customer_id?: string) {
  const exp = Math.floor(Date.now() / 1_000) + lifetimeSeconds;
  const tokens = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      callerToken({ sub: `reader ${index}`, exp, ...(customer_id === undefined ? {} : { customer_id }) }),
    ),
  );
  const after = await headOf(steady, tokens[0]);
  const graphql = () => (random() < 0.5 ? steady : victim).graphql;
  return startReaders(
    count,
    (index): ReaderOptions => ({ graphql, token: tokens[index] ?? '', after, random }),
  );
}

// What is made once, such as compiled queries and connections to Redis, is made before the first look.
const first = await startCallers(options.readers);
for (let number = 0; number < 300; number += 1) {
  await steady.deliver('STATUS_UPDATE', { id_msg: `warm-${number}` });
}
await eventually(() => first.every(({ seen }) => seen.length === 300));
await Promise.all(first.map((reader) => reader.leave()));
await eventually(async () => (await steady.metric('pasarela_events_subscribers')) === 0);
// Connections that are kept for a next request are gone by then.
await pause(KEPT_ALIVE_MS);
const began = await look(steady);

const readers = await startCallers(options.readers);
const tally = new Tally(readers);
const ofEach = Math.max(1, Math.round(options.readers / 4 / customerIds.length));
const customers = await Promise.all(
  customerIds.map(async (customer) => {
    const own = await startCallers(ofEach, customer);
    return { customer, readers: own, tally: new Tally(own), answered: new Set<string>() };
  }),
);
const everybody = [...readers, ...customers.flatMap((customer) => customer.readers)];
const answered: string[] = [];
let sent = 0;
let failed = 0;
const inFlight = new Set<Promise<void>>();
const chaos = startChaos({
  fleet,
  random,
  victim: () => victim,
  restart: async () => {
    victim = await fleet.start(service);
    return victim;
  },
});

const startedAt = Date.now();
const endsAt = startedAt + options.minutes * 60_000;
let reportedAt = startedAt;
let droppedAt = startedAt;
for (let now = startedAt; now < endsAt; now = Date.now()) {
  const due = Math.floor(((now - startedAt) / 1000) * options.rate);
  while (sent < due) send();
  if (now - droppedAt >= 1000) {
    droppedAt = now;
    for (const reader of everybody) if (random() < DROPS) reader.drop();
  }
  if (now - reportedAt >= REPORT_EVERY_MS) {
    reportedAt = now;
    report();
  }
  await pause(5);
}

await chaos.stop();
await Promise.all(inFlight);
const whole = await eventually(
  () =>
    tally.update().least === answered.length &&
    customers.every((customer) => customer.tally.update().least === customer.answered.size),
);
const final = report();
const missing = answered.filter((id) => !tally.has(id)).length;
/** What a customer was told of others, or not told of its own. */
const astray = customers.reduce((sum, customer) => {
  const { least, most, lost, repeated, misplaced } = customer.tally.update();
  const absent = [...customer.answered].filter((id) => !customer.tally.has(id)).length;
  return (
    sum + absent + Math.max(most - customer.answered.size, 0) + (most - least) + lost + repeated + misplaced
  );
}, 0);
await Promise.all(everybody.map((reader) => reader.leave()));
let ended = await look(steady);
const letGo = await eventually(async () => {
  ended = await look(steady);
  return (
    ended.heap <= began.heap + HEAP_SLACK_BYTES &&
    ended.timers <= began.timers &&
    ended.sockets <= began.sockets &&
    ended.listeners <= began.listeners
  );
});
const warnings = /\(node:\d+\) \w*Warning.*/.exec(steady.program.output())?.[0];

const say = (text: string) => process.stdout.write(`${text}\n`);
say('');
say(`events answered 201            ${answered.length}`);
say(`deliveries to readers          ${answered.length * readers.length}`);
say(
  `lost                           ${final.lost + missing}${whole ? '' : ', and not everybody had everything in time'}`,
);
say(`repeated                       ${final.repeated}`);
say(`misplaced                      ${final.misplaced}`);
say(`the same, of customers         ${astray}`);
say(`blows                          ${JSON.stringify(chaos.done)}`);
say(`held at the beginning          ${JSON.stringify(began)}`);
say(`held at the end                ${JSON.stringify(ended)}${letGo ? '' : ', which is more'}`);
if (warnings !== undefined) say(`warned                         ${warnings}`);
const good =
  whole &&
  letGo &&
  warnings === undefined &&
  final.lost + missing + final.repeated + final.misplaced + astray === 0;
say(good ? 'Nothing lost, nothing repeated, nothing left behind.' : 'FAILED');
process.exitCode = good ? 0 : 1;

/** Delivers a message until it is answered 201, to whoever is there; some of them once more. Every other one is a credit. */
function send(): void {
  const id_msg = `${sent}-${randomUUID()}`;
  const to = sent % 2 === 0 ? undefined : customers[Math.floor(sent / 2) % customers.length];
  const { type, body } =
    to === undefined ? { type: 'STATUS_UPDATE' as const, body: { id_msg } } : creditTo(to.customer, id_msg);
  sent += 1;
  const again = random() < DUPLICATES;
  const deliver = async (): Promise<void> => {
    for (;;) {
      const gateway = random() < 0.5 ? steady : victim;
      const status = await gateway.deliver(type, body).catch(() => 0);
      if (status === 201) return;
      failed += 1;
      await pause(50);
    }
  };
  const work = (async () => {
    await Promise.all(again ? [deliver(), pause(random() * 2_000).then(deliver)] : [deliver()]);
    answered.push(id_msg);
    to?.answered.add(id_msg);
  })();
  inFlight.add(work);
  void work.then(() => inFlight.delete(work));
}

function report() {
  const count = tally.update();
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  const told: Record<string, number> = {};
  for (const code of everybody.flatMap((reader) => reader.told)) told[code] = (told[code] ?? 0) + 1;
  const connections = everybody.reduce((sum, reader) => sum + reader.connections, 0);
  process.stdout.write(
    `${String(seconds).padStart(4)} s  sent ${sent}, answered ${answered.length}, refused and repeated ${failed}, ` +
      `delivered ${count.least} to ${count.most}, lost ${count.lost}, repeated ${count.repeated}, ` +
      `gaps ${told['EVENTS_GAP'] ?? 0}, connections ${connections}, told ${JSON.stringify(told)}\n`,
  );
  return count;
}

interface Held {
  readonly heap: number;
  readonly timers: number;
  readonly sockets: number;
  readonly listeners: number;
}

/** What a process holds; the connection that asks for its metrics is none of it. */
async function look({ program }: Member): Promise<Held> {
  const before = program.output().length;
  program.process.kill('SIGUSR2');
  let found: RegExpExecArray | null = null;
  await eventually(() => {
    found = /PROBE (.*)\n/.exec(program.output().slice(before));
    return found !== null;
  });
  // The probe writes exactly this.
  return JSON.parse((found as RegExpExecArray | null)?.[1] ?? 'null') as Held;
}

/** Whether it comes true in time. */
async function eventually(condition: () => boolean | Promise<boolean>): Promise<boolean> {
  const until = Date.now() + SETTLED_WITHIN_MS;
  while (!(await condition())) {
    if (Date.now() > until) return false;
    await pause(100);
  }
  return true;
}

function readOptions() {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: { minutes: text, readers: text, rate: text, seed: text, help: { type: 'boolean' } },
  });
  const numbers = {
    minutes: Number(values.minutes ?? 3),
    readers: Number(values.readers ?? 40),
    rate: Number(values.rate ?? 30),
    seed: Number(values.seed ?? 1),
  };
  if (values.help === true || !Object.values(numbers).every((number) => number > 0)) {
    process.stdout.write(`${USAGE}\n`);
    process.exit(values.help === true ? 0 : 2);
  }
  return numbers;
}
