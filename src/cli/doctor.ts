import { serviceOf } from '../app/config.ts';
import type { Variables } from '../app/variables.ts';
import {
  type Colour,
  type Command,
  EXIT,
  outliveReader,
  print,
  printMarked,
  readArguments,
  refuseArguments,
} from './command.ts';
import type { Finding } from './doctor/finding.ts';
import { lookAtFolder } from './doctor/folder.ts';
import { lookAtConfiguration, lookAtDecider, lookAtDocuments, lookAtPort } from './doctor/local.ts';
import { lookAtRedis } from './doctor/redis.ts';
import {
  lookAtIdentity,
  lookAtOwn,
  lookAtToken,
  lookAtUpstream,
  type Surroundings,
} from './doctor/upstream.ts';
import { lookAtAddress, lookAtWebhooks } from './doctor/webhooks.ts';

/** Looks at everything that the gateway depends on, and says what to do. */
export const doctor: Command = {
  help: `Usage: pasarela doctor [--json]

Looks at what the gateway rests on, from where it is run, with the variables that the gateway has: the configuration, the
folder, the port, Redis and its persistence settings, the upstream, the clock, the token, the address that the provider is
given, the webhooks registered there for each client, and where they are set the identity provider, the decider and the
trusted documents. It changes nothing but the access token, as below, and a file that it writes to DATA_DIR and removes. It runs
beside a gateway as well as before one. A cure that changes a variable needs a restart: docs/unknown-payments.md, "Restarts", says
when a gateway may be restarted.

In service mode the gateway's own API key and secret are tried, by the service's list of credentials. The access token is the
one that processes with the same two share in Redis, or, where there is none, a new one, which it stores there for them (should
that end the older, a running gateway fetches another at its next call). While Redis is not right neither token nor webhooks are
looked at: a new token may end those that running gateways hold. In passthrough the token is PASARELA_TOKEN, an access token of
the service.

  pasarela doctor && npm start     starts the gateway only where nothing is wrong

  --json   { "ok": …, "findings": [{ "check", "status": "ok" | "warning" | "failure" | "skipped", "message", "cure"? }] }

Exit codes: 0 no failure (warnings may stand); 1 at least one failure; 2 the command line is not understood.`,
  async run(args) {
    const { values, positionals } = readArguments(args, { json: { type: 'boolean' } });
    refuseArguments(positionals);
    outliveReader();
    const isJson = values.json === true;
    const findings: Finding[] = [];
    for await (const finding of examine()) {
      findings.push(finding);
      if (!isJson) show(finding);
    }
    const failures = findings.filter(({ status }) => status === 'failure').length;
    const warnings = findings.filter(({ status }) => status === 'warning').length;
    if (isJson) print(JSON.stringify({ ok: failures === 0, findings }, undefined, 2));
    else print(`\n${counted(failures, 'failure')}, ${counted(warnings, 'warning')}.`);
    return failures === 0 ? EXIT.done : EXIT.wrong;
  },
};

async function* examine(): AsyncGenerator<Finding, void> {
  const { variables, findings } = lookAtConfiguration();
  yield* findings;
  if (variables === undefined) return;
  yield* await lookAtFolder(variables);
  yield* await lookAtPort(variables);
  const redis = await lookAtRedis(variables);
  yield* redis;
  const upstream = await lookAtUpstream(variables);
  yield* upstream;
  yield* await lookAtIdentity(variables);
  yield* await lookAtDecider(variables);
  yield* await lookAtDocuments(variables);
  yield* await lookAtAddress(variables);
  const isUp = upstream.every(({ check, status }) => check !== 'upstream' || status === 'ok');
  const canShare = redis.every(({ status }) => status !== 'failure');
  yield* lookAtCredentials(variables, { isUp, canShare });
}

/** Looks at the credentials and the webhooks of each client that the gateway stands for, also where a command would act for one. */
async function* lookAtCredentials(variables: Variables, around: Surroundings): AsyncGenerator<Finding, void> {
  const clients = serviceOf(variables)?.clients ?? [];
  const each =
    clients.length === 0
      ? [{ variables, named: undefined }]
      : clients.map(({ clientId }) => ({
          variables: { ...variables, UPSTREAM_CLIENT_ID: clientId },
          named: clients.length < 2 ? undefined : clientId,
        }));
  for (const { variables: own, named } of each) {
    const { access, rest, findings } = await lookAtToken(own, around, named);
    try {
      yield* findings;
      if (access?.own !== undefined && (rest !== undefined || around.isUp))
        yield* await lookAtOwn(access.own, named);
      yield* await lookAtWebhooks(own, rest, named);
    } finally {
      await access?.[Symbol.asyncDispose]();
    }
  }
}

const MARKS: Readonly<Record<Finding['status'], readonly [mark: string, colour: Colour]>> = {
  ok: ['ok      ', 'green'],
  warning: ['WARNING ', 'yellow'],
  failure: ['FAILURE ', 'red'],
  skipped: ['skipped ', 'dim'],
};

function show({ check, status, message, cure }: Finding): void {
  const [mark, colour] = MARKS[status];
  printMarked(
    mark,
    colour,
    ` ${check.padEnd(13)} ${message}${cure === undefined ? '' : `\n         → ${cure}`}`,
  );
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
