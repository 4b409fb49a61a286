import { setTimeout } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { readPage } from '../docs/pages.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';

/** The section of ARCHITECTURE.md that says which REST calls an everyday query takes. */
const section = (await readPage('ARCHITECTURE.md'))
  .split('### What an everyday query costs\n')[1]
  ?.split('\n\n')
  .slice(0, 4)
  .join('\n');
const query = section?.match(/`(\{ client \{ accounts .*?)`/)?.[1] ?? '';
/** How long after the query before each row's query comes, in milliseconds. */
const WAITS = [0, 2_000, 6_000, 61_000, 301_000];
const rows = [...(section ?? '').matchAll(/^\| [^|]+ \| (\d+)[^|]* \| (\d+)[^|]* \|$/gm)];

it.each([
  ['passthrough', 1],
  ['service', 2],
] as const)('in %s mode an everyday query takes the REST calls of ARCHITECTURE.md', async (mode, column) => {
  let past = 0;
  // It stands still between the rows, however slow the machine is.
  const began = performance.now();
  const measured = vi.spyOn(performance, 'now').mockImplementation(() => began + past);
  try {
    await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    const config = mode === 'service' ? { service: serviceFor(sandbox) } : {};
    await using gateway = await startGateway({ sandbox, webhooks: false, config });
    const token = mode === 'service' ? await callerToken() : sandbox.accessToken;
    const requests = async () => (await control(sandbox, 'GET', '/sandbox/requests')).total;
    const calls: number[] = [];
    for (const wait of WAITS) {
      past += wait;
      // The memory of tokens reads its clock once in 100 ms (`CLOCK_MS` of auth/known-callers.ts).
      await setTimeout(150);
      const before = await requests();
      const { errors } = await gateway.query(query, {}, { authorization: `Bearer ${token}` });
      expect(errors).toBeUndefined();
      calls.push((await requests()) - before);
    }
    expect(rows.map((row) => Number(row[column]))).toEqual(calls);
  } finally {
    measured.mockRestore();
  }
});

/** The table of ARCHITECTURE.md that says which REST calls a screen of accounts takes. */
const screen = (await readPage('ARCHITECTURE.md'))
  .split('### A screen of accounts and their credits\n')[1]
  ?.split('\n## ')[0];
const screenRows = [...(screen ?? '').matchAll(/^\| [^|]+( \| \d+[^|]*){4} \|$/gm)].map(([row]) =>
  [...row.matchAll(/ \| (\d+)/g)].map(([, calls]) => Number(calls)),
);
/** What each of its rows asks of a credit besides what the rows before ask. */
const ASKED = [
  'amount { amount }',
  'payerBank { name }',
  'transaction { status }',
  'transaction { bank { name } }',
];

/** The calls of each row, which has how many more it takes than the row before. */
function screenCalls(column: number): readonly number[] {
  let calls = 0;
  return screenRows.map((row) => {
    calls += row[column] ?? Number.NaN;
    return calls;
  });
}

it.each([
  ['passthrough', 0, 2],
  ['service', 0, 1],
  ['narrowed', 3, 1],
] as const)(
  'a screen of accounts takes the REST calls of ARCHITECTURE.md: %s',
  async (who, firstColumn, againColumn) => {
    expect(screenRows).toHaveLength(ASKED.length);
    const first: number[] = [];
    const again: number[] = [];
    for (const count of ASKED.keys()) {
      await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, webhookHosts: ['example.mx'] });
      const config = who === 'passthrough' ? {} : { service: serviceFor(sandbox) };
      await using gateway = await startGateway({ sandbox, webhooks: ['MONEY_IN'], config });
      const owner = who === 'narrowed' ? await customerWithAccounts(sandbox) : sandbox.clientId;
      await creditAccounts(sandbox, owner, gateway.log);
      const claims = who === 'narrowed' ? { customer_id: owner } : {};
      const token = who === 'passthrough' ? sandbox.accessToken : await callerToken(claims);
      const asked = ASKED.slice(0, count + 1).join(' ');
      const document = `{ client { accounts(first: ${ACCOUNTS}) { nodes { moneyIn(first: ${CREDITS}) { nodes { ... on MoneyInEvent { ${asked} } } } } } } }`;
      const callsOf = async () => {
        const before = (await control(sandbox, 'GET', '/sandbox/requests')).total;
        const { data, errors } = await gateway.query(document, {}, { authorization: `Bearer ${token}` });
        expect(errors).toBeUndefined();
        const credits = data.client.accounts.nodes.map(
          ({ moneyIn }: { moneyIn: { nodes: unknown[] } }) => moneyIn.nodes.length,
        );
        expect(credits).toEqual(Array(ACCOUNTS).fill(CREDITS));
        return (await control(sandbox, 'GET', '/sandbox/requests')).total - before;
      };
      let past = 0;
      const began = performance.now();
      const measured = vi.spyOn(performance, 'now').mockImplementation(() => began + past);
      try {
        // What is read within 5 s of an event is not kept.
        past += 6_000;
        first.push(await callsOf());
        past += 2_000;
        await setTimeout(150);
        again.push(await callsOf());
      } finally {
        measured.mockRestore();
      }
    }
    expect(first).toEqual(screenCalls(firstColumn));
    expect(again).toEqual(screenCalls(againColumn));
  },
);

it('a fast screen of credits takes the REST calls of docs/configuration.md', async () => {
  const table = (await readPage('docs/configuration.md')).split(
    '\n#### A screen of credits that is fast\n',
  )[1];
  const [opens, person] = [...(table ?? '').matchAll(/^\| [^|`]+ \| `([^`]+)`[^|]* \| \d+ \| (\d+)/gm)];
  await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  await using gateway = await startGateway({ sandbox, webhooks: false });
  const { transactions } = await control(sandbox, 'GET', '/sandbox');
  const callsOf = async (document: string) => {
    const before = (await control(sandbox, 'GET', '/sandbox/requests')).total;
    expect((await gateway.query(document)).errors).toBeUndefined();
    return (await control(sandbox, 'GET', '/sandbox/requests')).total - before;
  };
  const screen = opens?.[1] ?? '';
  // The probe of the token, and the banks.
  await callsOf(screen);
  expect(await callsOf(screen)).toBe(Number(opens?.[2]));
  expect(await callsOf((person?.[1] ?? '').replace('…', transactions.moneyOutId))).toBe(Number(person?.[2]));
});

const ROWS = 100;

it('the join takes the REST calls of ARCHITECTURE.md: of lists that come whole, of neighbours in pages, and of customers that are far apart', async () => {
  const join = (await readPage('ARCHITECTURE.md')).split('\n### The join\n')[1]?.split('\n### ')[0] ?? '';
  const document = join.match(/`(\{ client .*?)`/)?.[1] ?? '';
  const rows = [...join.matchAll(/^\| [^|]+ \| (\d+)[^|]* \| \d+[^|]* \|$/gm)];
  const callsOf = async (sandbox: Sandbox, asked = document) => {
    await using gateway = await startGateway({ sandbox, webhooks: false });
    // The probe of the token, the banks, and the walks.
    await gateway.query(asked);
    const before = (await control(sandbox, 'GET', '/sandbox/requests')).total;
    expect((await gateway.query(asked)).errors).toBeUndefined();
    return (await control(sandbox, 'GET', '/sandbox/requests')).total - before;
  };
  await using small = await startSandbox({ port: 0, speed: 0, seed: 1 });
  await using large = await startSandbox({ port: 0, speed: 0, seed: 1, customers: 100 * ROWS });
  const calls = [await callsOf(small), await callsOf(large)];
  await addApart(large);
  // The end of a list costs one read more, and its last 100 stand on two pages here.
  calls.push((await callsOf(large, document.replace('first:', 'last:'))) - 2);
  expect(rows.map((row) => Number(row[1]))).toEqual(calls);
});

/** Adds an instrument of a customer of each page of 100 to the end of the list. */
async function addApart(sandbox: Sandbox): Promise<void> {
  const { clientId } = sandbox;
  const at = (path: string) => `/v1/clients/${clientId}${path}`;
  const { data: known } = await control(sandbox, 'GET', at('/instruments?page=1&per_page=1'));
  const bank = known[0].bankId;
  for (let page = 0; page < ROWS; page += 1) {
    const { data } = await control(sandbox, 'GET', at(`/customers?page=${100 * page + 50}&per_page=1`));
    await control(sandbox, 'POST', at('/instruments'), {
      client_id: clientId,
      customer_id: data[0].id,
      source_bank_id: bank,
      type: 'RECEIVER',
      rfc: 'ND',
      alias: 'Proveedor',
      instrumentKind: 'debit_card',
      debit_card: {
        destination_bank_id: bank,
        card_number: '4152310000000001',
        holder_name: 'Nombre de Cuarenta Caracteres Exactos Ok',
      },
    });
  }
}

const ACCOUNTS = 5;
const CREDITS = 5;

/** Opens as many accounts of a customer as the screen shows, and returns its id. */
async function customerWithAccounts(sandbox: Sandbox): Promise<string> {
  const { accounts } = await control(sandbox, 'GET', '/sandbox');
  const { ownerId } = accounts.find((account: { ownerId: string }) => account.ownerId !== sandbox.clientId);
  const path = `/v1/clients/${sandbox.clientId}/customers/${ownerId}/private_accounts`;
  for (let account = 0; account < ACCOUNTS; account += 1) await control(sandbox, 'POST', path, {});
  return ownerId;
}

/** Has each of the owner's first accounts credited, and the gateway keep the events. For a customer's, any of the client's are its own to show. */
async function creditAccounts(sandbox: Sandbox, owner: string, log: readonly string[]): Promise<void> {
  const { data } = await control(
    sandbox,
    'GET',
    `/v1/clients/${sandbox.clientId}/accounts?page=1&per_page=100`,
  );
  const isShown = ({ ownerId }: { ownerId: string }) => owner === sandbox.clientId || ownerId === owner;
  for (const { clabeNumber: clabe } of data.filter(isShown).slice(0, ACCOUNTS)) {
    for (let credit = 0; credit < CREDITS; credit += 1)
      await control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '1.00' });
  }
  await until(
    () => log.filter((line) => line.includes('a webhook was taken in')).length === ACCOUNTS * CREDITS,
  );
}
