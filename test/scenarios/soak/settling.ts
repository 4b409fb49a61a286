import { parseArgs } from 'node:util';
import { randomFrom } from '../../helpers/random.ts';
import { interruptPayments } from './settling-run.ts';

const USAGE = `Payments of all four kinds are interrupted at random, by kills of gateways, resets, pages with 503 and a failover of Redis, and their apps
never come back. It ends with 1 where the ledger of the sandbox contradicts what was told or recorded, and where what could be settled is not within
a minute.

  npm run soak:settling -- --intents 1000 --seed 3

  --intents   how many payments (1000)
  --seed      of the faults (1)
`;

const { values } = parseArgs({
  options: {
    intents: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const found = await interruptPayments({
  intents: Number(values.intents),
  random: randomFrom(Number(values.seed)),
  failover: true,
  withinMs: 60_000,
  lifetimeSeconds: 900,
});
process.stdout.write(`${JSON.stringify(found, undefined, 2)}\n`);
if (found.lies.length > 0) process.exitCode = 1;
