#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { ambient } from './ambient.ts';
import { adviceOnNode } from './node-version.ts';
import { startSandbox } from './start.ts';

const HELP = `Usage: npx @pasarela/sandbox [options]

Starts the REST service in a box on 127.0.0.1, until SIGINT, SIGTERM or SIGHUP. It forgets everything when it ends.

  --port <n>             where it listens; 0 takes any free port. Default 4010
  --speed <n>            how many times faster than real time it lives; at 0 its time moves only when stepped. Default 5
  --seed <n>             the same seed yields the same ids, secrets and CLABEs. Default 1
  --customers <n>        customers of the demo client beyond those of the story. Default 0
  --hosts <a,b>          names that it answers to, besides those of loopback
  --webhook-hosts <a,b>  hosts that webhooks may be delivered to, besides those of loopback
  --help                 shows this

Each option can also be given by a variable: SANDBOX_PORT, SANDBOX_SPEED, SANDBOX_SEED, SANDBOX_CUSTOMERS, SANDBOX_HOSTS,
SANDBOX_WEBHOOK_HOSTS. While it runs, /docs says what it can do.

Exit codes: 0 ended by a signal; 1 it could not start; 2 an option is wrong.
`;

const OPTIONS = ['port', 'speed', 'seed', 'customers', 'hosts', 'webhook-hosts'] as const;

const whole = (most: number) => z.string().regex(/^\d+$/).transform(Number).pipe(z.number().max(most));
const names = z.string().transform((text) =>
  text
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== ''),
);

const settings = z.object({
  port: whole(65_535).describe('a port, or 0 for any free one').default(4010),
  speed: z
    .string()
    .regex(/^\d+(\.\d+)?$/)
    .transform(Number)
    .pipe(z.number().max(100_000))
    .describe('a number from 0 to 100000')
    .default(5),
  seed: whole(Number.MAX_SAFE_INTEGER).describe('a whole number').default(1),
  customers: whole(10_000_000).describe('a whole number up to 10000000').default(0),
  hosts: names.describe('names, comma-separated').default([]),
  'webhook-hosts': names.describe('names, comma-separated').default([]),
});

/** Ends the process with what is wrong and the help's address. */
function refuse(message: string): never {
  process.stderr.write(`${message}\nnpx @pasarela/sandbox --help says what there is.\n`);
  process.exit(2);
}

function readOptions(): z.infer<typeof settings> {
  const text = { type: 'string' } as const;
  const options = Object.fromEntries(OPTIONS.map((name) => [name, text]));
  let values: Record<string, unknown>;
  try {
    ({ values } = parseArgs({ options: { ...options, help: { type: 'boolean', short: 'h' } } }));
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
  }
  if (values['help'] === true) {
    process.stdout.write(HELP);
    process.exit(0);
  }
  const given = OPTIONS.map((name) => {
    const variable = process.env[`SANDBOX_${name.toUpperCase().replace('-', '_')}`];
    return [name, values[name] ?? (variable === '' ? undefined : variable)] as const;
  });
  const read = settings.safeParse(Object.fromEntries(given));
  if (read.success) return read.data;
  const name = OPTIONS.find((option) => option === read.error.issues[0]?.path[0]) ?? 'port';
  const value = given.find(([option]) => option === name)?.[1];
  refuse(`--${name}: got "${String(value)}", wants ${settings.shape[name].unwrap().description}.`);
}

const advice = adviceOnNode();
if (advice !== undefined) {
  process.stderr.write(`${advice}\n`);
  process.exit(1);
}
const { port, speed, seed, customers, hosts, 'webhook-hosts': webhookHosts } = readOptions();
try {
  // Receivers may remember the messages of an earlier start.
  const run = ambient.uuid();
  const sandbox = await startSandbox({ port, speed, seed, customers, hosts, webhookHosts, run });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => void sandbox.stop().then(() => process.exit()));
  }
  process.stdout.write(`
The sandbox is ready: the transfer-and-account service, its clock ${speed} times faster.

  A page          ${sandbox.url}
  What it can do  ${sandbox.url}/docs
  What is there   ${sandbox.url}/sandbox
  Client          ${sandbox.clientId}
  Access token    ${sandbox.accessToken}

  curl -s ${sandbox.url}/v1/clients/${sandbox.clientId}/accounts -H 'authorization: Bearer ${sandbox.accessToken}'

Ctrl-C ends it.
`);
} catch (error) {
  const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
  const reason = isTaken ? `127.0.0.1:${port} is in use by another process. Choose another --port.` : error;
  process.stderr.write(`${reason instanceof Error ? reason.stack : reason}\n`);
  process.exit(1);
}
