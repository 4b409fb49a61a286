import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { LAYERS, SWITCHED_LAYERS, type SwitchedLayer } from '../../src/graphql/layers.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { readPage } from '../docs/pages.ts';
import { control, type GraphQLAnswer, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { documentsOfTheSuite } from './documents.ts';

describe('docs/layers.md', () => {
  it('draws the layers in the order in which they stand, with the switches that there are', async () => {
    const rows = [...(await readPage('docs/layers.md')).matchAll(/^\| `([a-z-]+)` \|.*\| (yes )?\|$/gm)];
    expect(rows.map(([, layer]) => layer)).toEqual(LAYERS);
    const switched = rows.filter(([, , off]) => off !== undefined).map(([, layer]) => layer);
    expect(switched.sort()).toEqual([...SWITCHED_LAYERS].sort());
  });
});

/** The first row of the array of Plackett and Burman: turned on, every two columns meet in all four ways (with a row of zeros). */
const FIRST_ROW = [1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0];
const COMBINATIONS: readonly (readonly SwitchedLayer[])[] = [
  [...SWITCHED_LAYERS],
  ...FIRST_ROW.map((_, shift) =>
    SWITCHED_LAYERS.filter((_layer, column) => FIRST_ROW[(column + shift) % FIRST_ROW.length] === 0),
  ),
];

it('every two layers are on and off with each other in all four ways', () => {
  for (const one of SWITCHED_LAYERS) {
    for (const other of SWITCHED_LAYERS) {
      const met = COMBINATIONS.map((off) => `${off.includes(one)} ${off.includes(other)}`);
      expect(new Set(met).size, `${one} and ${other}`).toBe(one === other ? 2 : 4);
    }
  }
});

/** An answer without what differs from request to request. */
const comparable = ({ status, data, errors }: GraphQLAnswer): unknown => ({
  status,
  data,
  errors: errors
    ?.map(({ extensions, ...error }) => ({ ...error, extensions: { ...extensions, requestId: undefined } }))
    .sort((one, other) => String(one.path).localeCompare(String(other.path))),
});

/** Fields whose answer is not the same from request to request, as they act or show what changes by itself. */
const CHANGING = /\b(credentials|events?|eventCursor|payments?|reachesBackTo)\b/;

describe('an answer does not depend on the layers that it came through', () => {
  let sandbox: Sandbox;
  let variables: Readonly<Record<string, unknown>>;
  let reference: RunningGateway;
  const documents = documentsOfTheSuite(buildSchema()).filter((text) => !CHANGING.test(text));

  beforeAll(async () => {
    sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    reference = await startGateway({ sandbox, webhooks: false });
    const { transactions } = await control(sandbox, 'GET', '/sandbox');
    variables = { first: 3, id: transactions.moneyOutId };
  });
  afterAll(async () => {
    await reference.stop();
    await sandbox.stop();
  });

  it.each(COMBINATIONS)('%#: without some of them', { timeout: 120_000 }, async (...off) => {
    expect(documents.length).toBeGreaterThan(20);
    const layersOff = new Set(off);
    await using gateway = await startGateway({ sandbox, webhooks: false, config: { layersOff } });
    for (const document of documents) {
      const expected = comparable(await reference.query(document, variables));
      // Two at once may share; by the fourth time a plan may run.
      const asked = [1, 2].map(() => gateway.query(document, variables));
      const answers = [...(await Promise.all(asked)), await gateway.query(document, variables)];
      answers.push(await gateway.query(document, variables));
      for (const answer of answers) expect(comparable(answer), document).toEqual(expected);
    }
  });
});

describe('the way that an operation took', () => {
  const QUERY = '{ client { id } }';
  const wayOf = async (gateway: RunningGateway, document = QUERY, headers = {}) =>
    (await gateway.query(document, {}, headers)).extensions?.['way'];

  it('is in its report, in a line of the log and in a count', async () => {
    await using gateway = await startGateway({ config: { upstreamReport: true } });
    const first = { transport: 'fast path', document: 'read', executor: 'graphql-js', isShared: false };
    expect(await wayOf(gateway)).toEqual({ ...first, because: 'its first runs' });
    expect(await wayOf(gateway)).toEqual({ ...first, document: 'kept', because: 'its first runs' });
    expect(await wayOf(gateway)).toEqual({ ...first, document: 'kept', executor: 'plan' });
    const lines = gateway.log.map((line) => JSON.parse(line)).filter(({ executor }) => executor === 'plan');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      level: 'debug',
      message: 'An operation has its result',
      document: 'kept',
    });
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toContain(
      'pasarela_operation_ways_total{transport="fast path",document="kept",executor="plan",because="",shared="false"} 1',
    );
  });

  it('names why a plan is not made, or is given up', async () => {
    await using gateway = await startGateway({ config: { upstreamReport: true } });
    const reasonAfter = async (document: string) => {
      await wayOf(gateway, document);
      await wayOf(gateway, document);
      return wayOf(gateway, document);
    };
    expect(await reasonAfter('{ client { id } eventCursor }')).toMatchObject({
      executor: 'graphql-js',
      because: 'a field that may run only once',
    });
    expect(await reasonAfter('{ client { id } customer(id: "x") { id } }')).toMatchObject({
      executor: 'fell back',
      because: 'a resolver failed',
    });
  });

  it('names the transport, and the layers that are off are not taken', async () => {
    const layersOff = new Set<SwitchedLayer>(['fast-path', 'plans', 'kept-documents']);
    await using gateway = await startGateway({ config: { upstreamReport: true, layersOff } });
    for (let time = 0; time < 3; time += 1) {
      expect(await wayOf(gateway)).toMatchObject({ transport: 'yoga', document: 'read' });
    }
  });

  it('is that of another where its result is', async () => {
    await using gateway = await startGateway({ config: { upstreamReport: true } });
    const document = '{ client { customers { totalCount } } }';
    const ways = await Promise.all(Array.from({ length: 8 }, () => wayOf(gateway, document)));
    expect(ways.filter((way) => (way as { isShared: boolean }).isShared).length).toBeGreaterThan(0);
  });
});
