import { parseArgs } from 'node:util';
import { z } from 'zod';
import { ONLY, TRAFFIC } from './plan.ts';

const USAGE = `Usage: npm run simulate -- [--seed N] [--hours H] [--runs R] [--only ${ONLY.join('|')}]
       npm run simulate -- [--traffic ${TRAFFIC.join('|')}] [--minutes M] [--until-broken] [--faults N] [--long]

  --seed          of the first run; one by chance where it is left out. Each further run takes the next
  --hours         simulated hours of each run; 0.1
  --runs          how many; 1
  --only          what the apps do; all of it where it is left out
  --traffic       dense: a fault every few seconds; ordinary: 50 readers, 200 payments an hour, a fault every few minutes; dense
  --minutes       begins no run after so many minutes
  --until-broken  ends with the first seed that fails
  --faults        no more faults than this in a run
  --long          writes every step

Exit codes: 0 every rule held; 1 one did not; 2 the command line is not understood.`;

const count = z.coerce.number().int().nonnegative();
const amount = z.coerce.number().positive();
const Options = z.strictObject({
  seed: count.optional(),
  hours: amount,
  runs: count,
  only: z.enum(ONLY).optional(),
  traffic: z.enum(TRAFFIC),
  faults: count.optional(),
  minutes: amount.optional(),
  long: z.boolean(),
  'until-broken': z.boolean(),
});

/** The options of `npm run simulate`. Ends the process where help is asked for, or where they are not understood. */
export function readOptions(): z.infer<typeof Options> {
  try {
    const { help, ...values } = parseArgs({
      options: {
        seed: { type: 'string' },
        hours: { type: 'string', default: '0.1' },
        runs: { type: 'string', default: '1' },
        only: { type: 'string' },
        traffic: { type: 'string', default: 'dense' },
        faults: { type: 'string' },
        minutes: { type: 'string' },
        long: { type: 'boolean', default: false },
        'until-broken': { type: 'boolean', default: false },
        help: { type: 'boolean', default: false, short: 'h' },
      },
    }).values;
    if (!help) return Options.parse(values);
    process.stdout.write(`${USAGE}\n`);
    process.exit(0);
  } catch (error) {
    const why =
      error instanceof z.ZodError ? z.prettifyError(error) : error instanceof Error ? error.message : error;
    process.stderr.write(`simulate: ${why}\n\n${USAGE}\n`);
    process.exit(2);
  }
}
