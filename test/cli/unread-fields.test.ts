import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import { follow, isGap, typed } from '../../packages/client/src/index.ts';
import type { EventType } from '../../src/events/log.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { cep, speiCredit } from '../helpers/ingress.ts';
import { startProgram } from '../helpers/program.ts';
import { until } from '../helpers/until.ts';
import { SECRET, startReceiver } from './receiver.ts';
import { pasarela } from './run.ts';

const IDS = ['whole', 'credit', 'receipt', 'last'];
const TOLD = /credit has null as transactionDate, which cannot be read\. UPSTREAM_INVALID/;

let gateway: RunningGateway;
let folder: string;
let start: string;
let environment: Record<string, string>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-unread-'));
  gateway = await startGateway({ webhooks: false });
  start = (await gateway.query('{ eventCursor }')).data.eventCursor;
  environment = {
    PORT: new URL(gateway.url).port,
    PASARELA_TOKEN: gateway.sandbox.accessToken,
    FORWARD_SECRET: SECRET,
    DATA_DIR: folder,
  };
  await deliver('MONEY_IN', speiCredit({ id_msg: 'whole' }));
  const body = { transaction_date: '02/03/2026 10:00', registered_at: 'ayer' };
  await deliver('MONEY_IN', speiCredit({ id_msg: 'credit', body }));
  const receipt = cep(gateway.sandbox.clientId, 'COMPLETED', 'receipt');
  Object.assign(receipt.payload['body'] ?? {}, { processed_at: 'mañana' });
  await deliver('CEP', receipt);
  await deliver('MONEY_IN', speiCredit({ id_msg: 'last' }));
});
afterAll(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true, force: true });
});

async function deliver(type: EventType, message: object): Promise<void> {
  const address = gateway.ingress.url(gateway.sandbox.clientId, type) ?? '';
  const { status } = await fetch(address, { method: 'POST', body: JSON.stringify(message) });
  expect(status).toBe(201);
}

const printed = (text: string): { readonly id: string }[] =>
  text.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));

it('an event with times that cannot be read is shown, with null and an error in their places', async () => {
  const { data, errors } = await gateway.query(
    '{ events(first: 9) { nodes { id ... on MoneyInEvent { amount { amount } transactionDate registeredAt } ... on CepEvent { processedAt } } } }',
  );
  const { nodes } = data.events;
  expect(nodes.map(({ id }: { id: string }) => id)).toEqual(IDS);
  expect(nodes[1]).toMatchObject({ amount: { amount: '250.00' }, transactionDate: null, registeredAt: null });
  expect(nodes[2]).toMatchObject({ processedAt: null });
  expect(errors?.map(({ path, extensions: { code } }) => [path?.at(-2), path?.at(-1), code])).toEqual([
    [1, 'transactionDate', 'UPSTREAM_INVALID'],
    [1, 'registeredAt', 'UPSTREAM_INVALID'],
    [2, 'processedAt', 'UPSTREAM_INVALID'],
  ]);
});

const token = () => gateway.sandbox.accessToken;
it.each([
  ['events over a socket', 'events', () => createSocket({ url: gateway.graphql, token })],
  ['moneyIn over a socket', 'moneyIn', () => createSocket({ url: gateway.graphql, token })],
  ['events over fetch', 'events', () => createFetch({ url: gateway.graphql, token })],
  ['moneyIn over fetch', 'moneyIn', () => createFetch({ url: gateway.graphql, token })],
])('a feed of %s hands it out, and what comes after it', async (_, field, sourceTo) => {
  const fields = '... on MoneyInEvent { transactionDate registeredAt }';
  const document = typed<
    { readonly [field: string]: { readonly id: string; readonly cursor: string } },
    { readonly after: string | null }
  >(
    `subscription S($after: Cursor) { ${field}(after: $after) { id cursor ${fields} ${field === 'events' ? '... on CepEvent { processedAt }' : ''} } }`,
  );
  const seen: string[] = [];
  const unread: string[] = [];
  const store = { load: () => ({ cursor: start }), save: () => undefined };
  const onErrors = (_errors: unknown, { id }: { readonly id: string }) => void unread.push(id);
  for await (const item of follow(sourceTo(), document, { store, onErrors })) {
    seen.push(isGap(item) ? 'gap' : item.id);
    if (seen.includes('last')) break;
  }
  const wanted = field === 'events' ? IDS : IDS.filter((id) => id !== 'receipt');
  expect([seen, unread]).toEqual([wanted, wanted.slice(1, -1)]);
});

it.each([
  ['replay', []],
  ['search', ['--from', '2026-01-01']],
])('events %s shows it with the others, and says what cannot be read', async (verb, args) => {
  const { code, stdout, stderr } = await pasarela(['events', verb, '--json', ...args], environment);
  expect(printed(stdout).map(({ id }) => id)).toEqual(IDS);
  expect(stderr).toMatch(TOLD);
  expect(code).toBe(0);
});

it('events tail shows it with the others, and says what cannot be read', async () => {
  await using program = startProgram('src/cli/pasarela.ts', environment, [
    ...['events', 'tail', '--json', '--after', start],
  ]);
  await program.says(/^\{"id":"last"/m);
  expect(printed(program.output()).map(({ id }) => id)).toEqual(IDS);
  expect(program.output()).toMatch(TOLD);
});

it('events forward posts it with the others, and says what cannot be read', async () => {
  await using receiver = await startReceiver(() => 204);
  await using program = startProgram('src/cli/pasarela.ts', environment, [
    ...['events', 'forward', '--to', receiver.url, '--from', start],
  ]);
  await until(() => receiver.taken.length === IDS.length);
  expect(receiver.taken.map(({ id }) => id)).toEqual(IDS);
  expect(receiver.taken[1]).toMatchObject({
    amount: { amount: '250.00' },
    transactionDate: null,
    registeredAt: null,
  });
  expect(program.output()).toMatch(TOLD);
});

it('events forward that begins at the oldest event, and is started again before that is taken, posts it with the others', async () => {
  let answer = 500;
  await using receiver = await startReceiver(() => answer);
  const run = (...args: string[]) =>
    startProgram('src/cli/pasarela.ts', environment, ['events', 'forward', '--to', receiver.url, ...args]);
  const refused = run('--from', 'oldest');
  await refused.says(/whole was not taken/);
  await refused.end('SIGKILL');
  answer = 204;
  await using again = run();
  await Promise.race([until(() => receiver.taken.length === IDS.length), again.says(/Trying again/)]);
  expect(receiver.taken.map(({ id }) => id)).toEqual(IDS);
});
