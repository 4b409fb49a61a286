import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ClientView } from '../../packages/sandbox/src/control-views.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { type Fleet, type Member, startFleet } from '../helpers/fleet.ts';
import { control } from '../helpers/gateway.ts';
import { speiCredit } from '../helpers/ingress.ts';
import { AUDIENCE, callerToken, ISSUER, JWT_SECRET } from '../helpers/service.ts';
import { TRANSPORTS } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';

const WEBHOOK_SECRET = 'a secret for tests that is long enough';
/** Everything that it selects is in the event: sockets share one execution among all who may see the same. */
const MONEY_IN = 'subscription { moneyIn { id ownerId amount { amount } } }';
const ROUNDS = 3;

type Client = Pick<ClientView, 'clientId' | 'apiKey' | 'clientSecret' | 'accounts'>;

let fleet: Fleet;
let folder: string;
let clients: readonly [Client, Client];
let members: readonly [Member, Member];
beforeAll(async () => {
  fleet = await startFleet();
  const { otherClients, ...demo } = await control(fleet.sandbox, 'GET', '/sandbox');
  clients = [demo, otherClients[0]];
  folder = await mkdtemp(join(tmpdir(), 'pasarela-two-clients-'));
  const file = join(folder, 'clients.json');
  const credentials = clients.map(({ clientId, apiKey, clientSecret }) => ({
    clientId,
    apiKey,
    clientSecret,
  }));
  await writeFile(file, JSON.stringify(credentials), { mode: 0o600 });
  const environment = {
    AUTH_MODE: 'service',
    AUTH_CLIENT_CLAIM: 'merchant',
    AUTH_JWT_SECRET: JWT_SECRET,
    AUTH_ISSUER: ISSUER,
    AUTH_AUDIENCE: AUDIENCE,
    UPSTREAM_CLIENTS: file,
    WEBHOOK_SECRET,
  };
  members = [await fleet.start(environment), await fleet.start(environment)];
});
afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Delivers a credit of a client to a process, as the provider does. @returns the event's id */
async function credit({ clientId, accounts }: Client, to: Member): Promise<string> {
  const [account] = accounts;
  if (account === undefined) throw new Error('each client of the sandbox has an account');
  const body = { beneficiary_account: account.clabe, owner_id: account.ownerId };
  const message = speiCredit({ body });
  const response = await fetch(ingressUrl(to.url, clientId, 'MONEY_IN', WEBHOOK_SECRET), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(message),
  });
  expect([response.status, await response.text()]).toEqual([201, expect.anything()]);
  return message.id_msg;
}

it.each(TRANSPORTS)(
  'over %s, one subject of two clients that asks the same at both processes is given the credits of the client that its token names',
  async (_name, subscribe) => {
    const tokens = await Promise.all(
      clients.map(({ clientId }) => callerToken({ sub: 'somebody', merchant: clientId })),
    );
    // Two of each client at each process: where they share an execution, the second one joins that of the first.
    const streams = members.flatMap((member) =>
      [0, 1, 1, 0].map((client) => ({
        client,
        stream: subscribe(member.graphql, tokens[client] ?? '', { query: MONEY_IN }),
      })),
    );
    const open = (member: Member) => member.metric('pasarela_events_subscribers');
    await until(async () => (await Promise.all(members.map(open))).every((count) => count === 4));
    const sent: [string[], string[]] = [[], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      // The other client's come first: who is given its own last has been given all that was before.
      for (const member of members) {
        for (const client of [1, 0] as const) sent[client].push(await credit(clients[client], member));
      }
    }
    const last = [await credit(clients[1], members[0]), await credit(clients[0], members[0])];
    sent[1].push(last[0] ?? '');
    sent[0].push(last[1] ?? '');
    for (const { client, stream } of streams) await stream.received(sent[client === 0 ? 0 : 1].length);
    for (const { client, stream } of streams) {
      expect(stream.results.map(({ data, errors }) => errors ?? data.moneyIn.id)).toEqual(
        sent[client === 0 ? 0 : 1],
      );
    }
    await Promise.all(streams.map(({ stream }) => stream.leave()));
    await until(async () => (await Promise.all(members.map(open))).every((count) => count === 0));
  },
);
