import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { readVariables } from '../../src/app/config.ts';
import { lookAtPort } from '../../src/cli/doctor/local.ts';
import { json } from '../helpers/http-stub.ts';

/** What the doctor finds of a gateway whose `/readyz` says this. */
async function lookAt(state: object, variables: Readonly<Record<string, string>> = {}) {
  const gateway = createServer((_request, response) => json(response, state, 200)).listen(0, '127.0.0.1');
  await once(gateway, 'listening');
  const { port } = gateway.address() as AddressInfo;
  const own = { HOST: '127.0.0.1', PORT: String(port) };
  const findings = await lookAtPort(readVariables({ ...own, ...variables }));
  gateway.closeAllConnections();
  gateway.close();
  return findings.map(({ message, ...finding }) => ({
    ...finding,
    message: message.replaceAll(`http://127.0.0.1:${port}`, 'URL'),
  }));
}

const findingsOf = async (state: object) =>
  (await lookAt(state)).map(({ status, message }) => [status, message]);

it.each([
  ['is ready', { status: 'ready' }, [['ok', 'runs at URL, and is ready']]],
  [
    'is without parts',
    { status: 'degraded', degraded: ['events', 'payments', 'upstream'], spooled: 3 },
    [['warning', 'runs at URL without events and payments and upstream; 3 events wait in its spool']],
  ],
  [
    'cannot record payments',
    {
      ...{ status: 'degraded', degraded: ['payments'] },
      reasons: ['The record of payments in DATA_DIR cannot be written: database is locked.'],
    },
    [
      [
        'failure',
        expect.stringMatching(/^the gateway at URL sends no payment\. The record of .* is locked$/),
      ],
    ],
  ],
  [
    'has PAYMENTS off',
    {
      ...{ status: 'degraded', degraded: ['payments'], paymentsHeld: true },
      reasons: ['Payments are held: PAYMENTS is off.'],
    },
    [['failure', 'the gateway at URL sends no payment: PAYMENTS is off']],
  ],
  [
    'has PAYMENTS off, and its payments were stopped',
    {
      ...{ status: 'degraded', degraded: ['payments'], paymentsHeld: true },
      reasons: ['Payments are held: PAYMENTS is off.', 'Payments are held: an operator has stopped them.'],
    },
    [
      ['failure', 'the gateway at URL sends no payment: PAYMENTS is off'],
      ['failure', expect.stringMatching(/^the gateway at URL holds all payments/)],
    ],
  ],
  [
    'holds its payments, and is without another part',
    { status: 'degraded', degraded: ['events', 'payments'], paymentsHeld: true },
    [
      ['failure', expect.stringMatching(/^the gateway at URL holds all payments/)],
      ['warning', 'runs at URL without events; 0 events wait in its spool'],
    ],
  ],
  [
    'rests on a Redis that may lose what it has taken',
    { status: 'degraded', degraded: ['redis'], reasons: ['One.', 'Two.'] },
    [['warning', 'runs at URL on a Redis that may lose what it has taken: One. Two.']],
  ],
  [
    'has spools that cannot be read',
    { status: 'degraded', degraded: ['spool'], unreadableSpools: ['a', 'b'] },
    [
      [
        'failure',
        'the gateway at URL cannot read a, b in its DATA_DIR: events in it are delivered to nobody',
      ],
    ],
  ],
  [
    'has a spool that takes no event',
    { status: 'degraded', degraded: ['spool'], reasons: ['The disk is full.'] },
    [['failure', 'the gateway at URL has a spool that takes no event: The disk is full.']],
  ],
  [
    'has what a restart would lose',
    { status: 'ready', spooled: 0, unwritten: 2 },
    [
      [
        'warning',
        'the gateway at URL has 2 answers to payments, or keys to give back, in its memory alone, as their record does not take them',
      ],
      ['ok', 'runs at URL, and is ready'],
    ],
  ],
  ['is being stopped', { status: 'draining' }, [['failure', 'runs at URL and is draining']]],
  [
    'can keep no event',
    { status: 'unready', reasons: ['No disk.', 'No Redis.'] },
    [['failure', 'runs at URL and is unready: No disk. No Redis.']],
  ],
  ['is another program', { status: 'fine' }, [['failure', 'what answers at URL is not the gateway']]],
])('tells of a gateway that %s each thing once', async (_what, state, found) => {
  expect(await findingsOf(state)).toEqual(found);
});

it('says that credits are refused while Redis is away, where a decider is set', async () => {
  const state = { status: 'degraded', degraded: ['events'], spooled: 0 };
  const cureOf = async (variables?: Readonly<Record<string, string>>) =>
    (await lookAt(state, variables))[0]?.cure;
  expect(await cureOf()).toMatch(/Nothing is lost while the spool can be written\.$/);
  expect(await cureOf({ MONEY_IN_DECISION_URL: 'http://127.0.0.1:9/decide' })).toMatch(
    /SPEI credits get 503, as there is a decider/,
  );
});
