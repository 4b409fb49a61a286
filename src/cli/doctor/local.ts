import { createConnection } from 'node:net';
import { z } from 'zod';
import { ConfigError, readEnvironment } from '../../app/config.ts';
import { doubtsOf, readMisspellings, weaknessesOf } from '../../app/config-hints.ts';
import { readTrustedDocuments } from '../../app/trusted-documents-file.ts';
import type { Variables } from '../../app/variables.ts';
import { clock } from '../../common/clock.ts';
import { gatewayOrigin } from '../address.ts';
import { type Finding, Findings, reasonOf } from './finding.ts';
import { UNREADABLE_SPOOL_CURE } from './folder.ts';

const TIMEOUT_MS = 3_000;
/** How long a gateway may take to answer how it is, and how long it may take to know, in milliseconds. */
const ANSWER_MS = 5_000;
const NEWS_MS = 3_000;
/** How long a gateway tells what it has seen last as if it were now (docs/monitoring.md, "Health"), in milliseconds. */
const FRESH_MS = 1_000;

/** Reads the configuration; a wrong one is a failure for each variable, a weak secret a warning. */
export function lookAtConfiguration(): {
  readonly variables?: Variables;
  readonly findings: readonly Finding[];
} {
  const found = new Findings('configuration');
  try {
    const variables = readEnvironment();
    found.ok(
      variables.UPSTREAM_URL === undefined
        ? 'can be read. UPSTREAM_URL is not set: the gateway starts the embedded sandbox, and no real money moves'
        : `can be read; AUTH_MODE is ${variables.AUTH_MODE}`,
    );
    for (const weakness of weaknessesOf(variables)) {
      found.warning(weakness, 'Make one with `openssl rand -base64 32`, and rotate to it: docs/secrets.md.');
    }
    for (const { text, cure } of doubtsOf(variables)) found.warning(text, cure);
    for (const misspelling of readMisspellings())
      found.warning(misspelling, 'Correct its name, or leave it out.');
    return { variables, findings: found.list };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [, ...problems] = error.message.split('\n');
    for (const problem of problems) {
      const [wrong = problem, wanted] = problem.trim().split(/[,;] wants /);
      found.failure(wrong, wanted === undefined ? 'Correct it.' : `Set it to ${wanted}`);
    }
    return { findings: found.list };
  }
}

/** Checks if the port is free, or if the gateway answers at it, and how the gateway is. */
export async function lookAtPort({
  HOST,
  PORT,
  MONEY_IN_DECISION_URL,
}: Variables): Promise<readonly Finding[]> {
  const found = new Findings('gateway');
  if (PORT === 0) {
    found.skipped('PORT is 0: any free port');
    return found.list;
  }
  const url = gatewayOrigin(HOST, PORT);
  const decides = MONEY_IN_DECISION_URL !== undefined;
  const other = 'Choose another PORT, or end the program that has this one.';
  try {
    const state = await stateAt(url);
    tellOfUnwritten(found, url, state?.unwritten ?? 0);
    if (state === undefined) found.failure(`what answers at ${url} is not the gateway`, other);
    else if (state.status === 'ready') found.ok(`runs at ${url}, and is ready`);
    else if (state.status === 'degraded') {
      const { degraded = [], spooled = 0, reasons = [] } = state;
      const { paymentsHeld = false } = state;
      const record = reasons.find((reason) => reason.startsWith('The record of payments in DATA_DIR'));
      const isTold = (part: string) =>
        part === 'spool' ||
        part === 'redis' ||
        (part === 'payments' && (paymentsHeld || record !== undefined));
      const away = degraded.filter((part) => !isTold(part));
      if (paymentsHeld) tellOfHeld(found, url, reasons);
      if (record !== undefined) tellOfRecord(found, url, record);
      if (away.length > 0) {
        found.warning(
          `runs at ${url} without ${away.join(' and ')}; ${spooled} events wait in its spool`,
          `The checks of Redis and of the upstream say more. ${decides ? 'While Redis or a replica of it is away, SPEI credits get 503, as there is a decider; nothing else is lost while the spool can be written.' : 'Nothing is lost while the spool can be written.'}`,
        );
      }
      if (degraded.includes('redis')) {
        found.warning(
          `runs at ${url} on a Redis that may lose what it has taken: ${reasons.join(' ')}`,
          'The check of Redis names the cure of each.',
        );
      }
      tellOfSpool(found, url, state);
    } else {
      const { status, reasons } = state;
      found.failure(
        `runs at ${url} and is ${[status, ...(reasons === undefined ? [] : [reasons.join(' ')])].join(': ')}`,
        'Unless it is being stopped: make room on the disk of DATA_DIR, and bring Redis back.',
      );
    }
  } catch (error) {
    const reason = reasonOf(error);
    if (error instanceof Error && error.name === 'TimeoutError') {
      found.failure(
        `what listens at ${url} has not answered for ${ANSWER_MS / 1_000} s`,
        `Where it is the gateway, its process hangs, or the machine is too busy. ${other}`,
      );
    } else if (/ECONNREFUSED/.test(reason)) found.ok(`does not run; ${url} is free`);
    else found.failure(`what listens at ${url} does not speak HTTP: ${reason}`, other);
  }
  return found.list;
}

/** Says why the gateway cannot record payments. */
function tellOfRecord(found: Findings, url: string, problem: string): void {
  found.failure(
    `the gateway at ${url} sends no payment. ${problem.replace(/\.$/, '')}`,
    'End what else has the file open, or make room on the disk of DATA_DIR. The gateway goes on by itself.',
  );
}

/** Says why the gateway sends no payment. */
function tellOfHeld(found: Findings, url: string, reasons: readonly string[]): void {
  const held = reasons.filter((reason) => reason.startsWith('Payments are held'));
  const others = held.filter((reason) => !reason.includes('PAYMENTS is off'));
  if (others.length < held.length) {
    found.failure(
      `the gateway at ${url} sends no payment: PAYMENTS is off`,
      'Unset PAYMENTS and start that gateway again: no command lets its payments go on.',
    );
    if (others.length === 0) return;
  }
  found.failure(
    `the gateway at ${url} holds all payments: their record has been put back to an earlier state, or an operator has stopped them`,
    'Run `pasarela payments status`. Where the record was put back, compare the transactions from the time of the copy on, which it prints, not from when it was noticed, with what callers hold, then run `pasarela payments resume --put-back`, otherwise `pasarela payments resume`: docs/redis.md, "When a record was put back".',
  );
}

/** Says what a restart of the gateway would lose of payments. */
function tellOfUnwritten(found: Findings, url: string, unwritten: number): void {
  if (unwritten === 0) return;
  found.warning(
    `the gateway at ${url} has ${unwritten} answers to payments, or keys to give back, in its memory alone, as their record does not take them`,
    'Do not restart it until this is over: docs/unknown-payments.md, "Restarts". It tries on by itself.',
  );
}

/** Says of a spool that it cannot be read, or takes no event. */
function tellOfSpool(
  found: Findings,
  url: string,
  { degraded = [], unreadableSpools = [], reasons = [] }: z.infer<typeof Readiness>,
): void {
  if (unreadableSpools.length > 0) {
    found.failure(
      `the gateway at ${url} cannot read ${unreadableSpools.join(', ')} in its DATA_DIR: events in it are delivered to nobody`,
      UNREADABLE_SPOOL_CURE,
    );
  } else if (degraded.includes('spool')) {
    found.failure(
      `the gateway at ${url} has a spool that takes no event: ${reasons.join(' ')}`,
      'Make room on the disk of DATA_DIR, or have it written to again: docs/alerts.md, PasarelaSpoolNotWritable. Webhooks get 503 as soon as Redis is away.',
    );
  }
}

/** Asks a gateway how it is, again until it has looked since: it answers at once, with what it knew before. */
async function stateAt(url: string): Promise<z.infer<typeof Readiness> | undefined> {
  const began = clock.monotonic();
  for (;;) {
    const response = await fetch(`${url}/readyz`, { signal: clock.timeoutSignal(ANSWER_MS) });
    const state = Readiness.safeParse(await response.json().catch(() => undefined)).data;
    const waited = clock.monotonic() - began;
    const isOld = state?.status === 'unready' || (state?.ageMs ?? 0) > waited + FRESH_MS;
    if (!isOld || waited > NEWS_MS) return state;
    await clock.sleep(100);
  }
}

const Readiness = z.object({
  status: z.enum(['ready', 'degraded', 'unready', 'draining']),
  ageMs: z.number().optional(),
  degraded: z.array(z.string()).optional(),
  spooled: z.number().optional(),
  unwritten: z.number().optional(),
  paymentsHeld: z.boolean().optional(),
  unreadableSpools: z.array(z.string()).optional(),
  reasons: z.array(z.string()).optional(),
});

/** Checks that each document is stored under its hash, and still fits the graph. */
export async function lookAtDocuments({ TRUSTED_DOCUMENTS: files }: Variables): Promise<readonly Finding[]> {
  const found = new Findings('documents');
  if (files === undefined) return found.list;
  const cure = 'Make it again: pasarela schema --persisted-documents FILES… > documents.json';
  let documents: ReadonlyMap<string, string>;
  try {
    documents = readTrustedDocuments(files);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [, ...problems] = error.message.split('\n');
    found.failure(problems.join(' ').trim(), cure);
    return found.list;
  }
  const misfits = await misfitsOf(documents);
  if (misfits.length > 0)
    found.failure(`documents of ${files.join(', ')} do not fit the graph: ${misfits.join('; ')}`, cure);
  else found.ok(`${new Set(documents.values()).size} documents of ${files.join(', ')} fit the graph`);
  return found.list;
}

async function misfitsOf(documents: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const { parse, validate } = await import('graphql');
  const { buildSchema } = await import('../../schema/index.ts');
  const graph = buildSchema();
  const texts = new Map([...documents].map(([id, text]) => [text, id]));
  const misfit = (text: string) => {
    try {
      return validate(graph, parse(text))[0];
    } catch (error) {
      return error;
    }
  };
  return [...texts].flatMap(([text, hash]) => {
    const error = misfit(text);
    return error === undefined ? [] : [`${hash.slice(0, 12)}…: ${reasonOf(error)}`];
  });
}

/** Checks that the decider on SPEI credits can be reached. It sends nothing, because an envelope would be decided on. */
export async function lookAtDecider({
  MONEY_IN_DECISION_URL: address,
}: Variables): Promise<readonly Finding[]> {
  const found = new Findings('decider');
  if (address === undefined) return found.list;
  const { hostname, port, protocol, host } = new URL(address);
  try {
    await connects(hostname.replace(/^\[|\]$/g, ''), Number(port || (protocol === 'https:' ? 443 : 80)));
    found.ok(`${host} takes connections`);
  } catch (error) {
    found.failure(
      `${host} takes no connection: ${reasonOf(error)}. Every new SPEI credit is answered with 503`,
      'Start what MONEY_IN_DECISION_URL names, or correct the address; unset accepts every new credit.',
    );
  }
  return found.list;
}

function connects(host: string, port: number): Promise<void> {
  return new Promise((resolved, rejected) => {
    const socket = createConnection({ host, port, timeout: TIMEOUT_MS });
    socket.once('connect', () => {
      socket.destroy();
      resolved();
    });
    socket.once('timeout', () => socket.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    socket.once('error', rejected);
  });
}
