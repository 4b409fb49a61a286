import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import {
  type AlteredService,
  altered,
  ODDITIES,
  type Oddity,
  type Place,
  placesIn,
  startAltered,
} from '../helpers/altered-service.ts';
import { control, type GraphQLAnswer, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { OWN, TRANSACTION } from '../helpers/selections.ts';

const RUNS = 30;

/** And where it leads to, beside its id, if it has one. */
const RELATED: Readonly<Record<string, string>> = {
  accounts: 'id bank { id } owner { __typename } instrument { id alias account { id } }',
  customers: 'id accounts { nodes { id clabe } } instruments { nodes { id alias } }',
  instruments: 'id bank { id } owner { __typename } customer { id name } account { id status }',
  webhooks: 'id',
};

const NOUNS = Object.keys(OWN);
/** Lists whose rows are spoiled, each with the document that selects it. A list of the root is selected by itself. */
const LISTS: readonly {
  readonly name: string;
  readonly noun: string;
  readonly own: string | undefined;
  readonly select: (list: string) => string;
}[] = [
  ...NOUNS.map((noun) => ({
    name: `Client.${noun}`,
    noun,
    own: OWN[noun],
    select: (list: string) => `{ of: client { ${list} } }`,
  })),
  {
    name: 'Customer.instruments',
    noun: 'instruments',
    own: OWN['instruments'],
    select: (list) => `{ of: customer(id: "${world.customerIds[0]}") { ${list} } }`,
  },
];
/** The page that an answer shows. */
const pageOf = (noun: string, { data }: GraphQLAnswer) => (data.of ?? data)[noun];
/** The path of an error, from the list on. */
const pathIn = (noun: string, path: readonly (string | number)[]) => path.slice(path.indexOf(noun));
/** What finds out once a minute whose token it is (docs/authentication.md, "Passthrough"): nothing is answered where it is odd. */
const PROBE = '/instruments?page=1&per_page=1';
/** The list's own path in the service is the noun's name. */
const isListOf = (noun: string, path: string): boolean =>
  new RegExp(`/clients/[^/]+/${noun}(\\?|$)`).test(path) && !path.endsWith(PROBE);

/** Errors that are not told as the service's own. */
const notOfTheService = ({ errors = [] }: GraphQLAnswer) =>
  errors.filter(({ extensions }) => !OF_THE_SERVICE.has(extensions['code']));

/** Of an answer of the service, whatever it is. */
const OF_THE_SERVICE: ReadonlySet<unknown> = new Set<unknown>([
  'UPSTREAM_INVALID',
  'UPSTREAM_UNAVAILABLE',
  'TOO_COMPLEX',
]);

const withoutRequest = ({ status, data, errors }: GraphQLAnswer) => ({
  status,
  data,
  errors: errors
    ?.map((error) => JSON.stringify([error.path, error.message, error.extensions['code']]))
    .sort(),
});

let sandbox: Sandbox;
let service: AlteredService;
let gateway: RunningGateway;
// biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
let world: any;
let documents = 0;

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, webhookHosts: ['example.mx'] });
  service = await startAltered(sandbox.url);
  gateway = await startGateway({
    sandbox,
    config: { ...PATIENT, upstreamUrl: service.url, listsMaxAgeMs: 0 },
  });
  world = await control(sandbox, 'GET', '/sandbox');
  await gateway.query('{ client { id } }');
});

afterAll(async () => {
  await gateway.stop();
  await service[Symbol.asyncDispose]();
  await sandbox.stop();
});

/** Asks three times, under a name of its own: graphql-js answers twice, then the plan. All must say the same. */
async function askBothWays(selection: string): Promise<GraphQLAnswer> {
  documents += 1;
  const document = `query Q${documents} ${selection}`;
  const answers = [
    await gateway.query(document),
    await gateway.query(document),
    await gateway.query(document),
  ] as const;
  const [reference, ...others] = answers.map(withoutRequest);
  for (const other of others) expect(other).toEqual(reference);
  return answers[0];
}

/** Alters one place of the answers to some calls. Which place, a number says: answers differ in how many they have. */
function alterAt(
  isAltered: (path: string) => boolean,
  choice: number,
  oddity: Oddity,
  within: Place = [],
): void {
  service.alter = ({ method, path }, { status, body }) => {
    if (method !== 'GET' || status !== 200 || !isAltered(path)) return undefined;
    const inside = within.reduce<unknown>((value, name) => Reflect.get(Object(value), name), body);
    const places = [[], ...placesIn(inside)];
    const place = places[choice % places.length] ?? [];
    return { body: altered(body, [...within, ...place], oddity) };
  };
}

const someOddity = fc.constantFrom<Oddity>(...ODDITIES);

describe('an odd answer of the service', () => {
  it.each(LISTS)(
    'to a row of $name spoils that row alone, at its own path',
    { timeout: 300_000 },
    async ({ noun, own, select }) => {
      const selection = select(
        `${noun}(first: 100) { totalCount nodes { ${own} } edges { cursor node { __typename } } }`,
      );
      service.alter = () => undefined;
      const whole = await askBothWays(selection);
      expect(whole.errors).toBeUndefined();
      const rows: unknown[] = pageOf(noun, whole).nodes;
      expect(rows.length).toBeGreaterThan(1);
      await fc.assert(
        fc.asyncProperty(fc.nat(rows.length - 1), fc.nat(200), someOddity, async (row, choice, oddity) => {
          alterAt((path) => isListOf(noun, path), choice, oddity, ['data', row]);
          const answer = await askBothWays(selection);
          const { nodes, edges } = pageOf(noun, answer) ?? { nodes: [], edges: [] };
          // A row that is taken out leaves a list that says of itself that there are more.
          if (nodes.length === 0) {
            expect(answer.errors).toMatchObject([{ extensions: { code: 'UPSTREAM_INVALID' } }]);
            expect(oddity).toBe('dropped');
            return;
          }
          expect(nodes.toSpliced(row, 1)).toEqual(rows.toSpliced(row, 1));
          expect(edges).toHaveLength(rows.length);
          for (const { path = [], extensions } of answer.errors ?? []) {
            expect(extensions['code']).toBe('UPSTREAM_INVALID');
            const [list, , at] = pathIn(noun, path);
            expect([list, at]).toEqual([noun, row]);
          }
        }),
        { numRuns: RUNS },
      );
    },
  );

  it.each(NOUNS)(
    'to a list of %s is never INTERNAL, wherever it leads to',
    { timeout: 300_000 },
    async (noun) => {
      const selection = `{ client { ${NOUNS.map((one) => `${one}(first: 100) { totalCount pageInfo { endCursor } nodes { ${RELATED[one]} } }`).join(' ')} } }`;
      await fc.assert(
        fc.asyncProperty(fc.nat(2_000), someOddity, async (choice, oddity) => {
          alterAt((path) => isListOf(noun, path), choice, oddity);
          // Which way an instrument is read depends on what has arrived: the answers may differ in what is odd.
          documents += 1;
          for (let time = 0; time < 3; time += 1) {
            const answer = await gateway.query(`query Q${documents} ${selection}`);
            expect(notOfTheService(answer)).toEqual([]);
            for (const other of NOUNS.filter((one) => one !== noun)) {
              expect(answer.data.client[other].nodes.length).toBeGreaterThan(0);
            }
          }
        }),
        { numRuns: RUNS },
      );
    },
  );

  it.each([
    [
      'a transaction',
      () => [
        `/transactions/${world.transactions.moneyOutId}`,
        `transaction(id: "${world.transactions.moneyOutId}") { ${TRANSACTION} }`,
      ],
    ],
    [
      'a penny validation',
      () => [
        `/transactions/${world.transactions.pennyValidationId}`,
        `transaction(id: "${world.transactions.pennyValidationId}") { ${TRANSACTION} }`,
      ],
    ],
    [
      'a refund',
      () => [
        `/transactions/${world.transactions.refundId}`,
        `transaction(id: "${world.transactions.refundId}") { ${TRANSACTION} }`,
      ],
    ],
    [
      'an instrument',
      () => [
        `/instruments/${world.centralizingInstrumentId}`,
        `instrument(id: "${world.centralizingInstrumentId}") { ${OWN['instruments']} ${RELATED['instruments']} }`,
      ],
    ],
    [
      'any object',
      () => [
        `/instruments/${world.centralizingInstrumentId}`,
        `node(id: "${world.centralizingInstrumentId}") { id ... on Instrument { alias } }`,
      ],
    ],
  ])('to %s is never INTERNAL, and spoils nothing beside it', { timeout: 300_000 }, async (_what, of) => {
    const [route = '', selection = ''] = of();
    await fc.assert(
      fc.asyncProperty(fc.nat(200), someOddity, async (choice, oddity) => {
        alterAt((path) => path.includes(route), choice, oddity);
        const answer = await askBothWays(
          `{ ${selection} eventCursor client { id accounts { totalCount } } }`,
        );
        expect(notOfTheService(answer)).toEqual([]);
        expect(answer.data.eventCursor).toEqual(expect.any(String));
        expect(answer.data.client.accounts.totalCount).toBeGreaterThan(0);
      }),
      { numRuns: RUNS },
    );
  });

  it('to the catalog of banks spoils the catalog alone', { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(200), someOddity, async (choice, oddity) => {
        // A catalog that was read serves for minutes.
        const fresh = await startGateway({
          sandbox,
          webhooks: false,
          config: { ...PATIENT, upstreamUrl: service.url },
        });
        try {
          service.alter = () => undefined;
          await fresh.query('{ client { id } }');
          alterAt((path) => path.startsWith('/v1/banks'), choice, oddity);
          const answer = await fresh.query(
            '{ banks { id name attributes } client { id accounts { nodes { id status bank { id } } } } }',
          );
          expect(notOfTheService(answer)).toEqual([]);
          for (const account of answer.data.client.accounts.nodes) expect(account.status).toMatch(/./);
        } finally {
          await fresh.stop();
        }
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('to the credentials is never INTERNAL', { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(200), someOddity, async (choice, oddity) => {
        alterAt((path) => path.endsWith('/credentials'), choice, oddity);
        const answer = await gateway.query(
          `{ credentials(clientId: "${world.clientId}") { id clientId clientSecret environment status createdAt updatedAt deletedAt } }`,
          {},
          { authorization: undefined, 'x-api-key': sandbox.apiKey },
        );
        expect(notOfTheService(answer)).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });
});
