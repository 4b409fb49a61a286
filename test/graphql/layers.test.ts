import { describe, expect, it } from 'vitest';
import { LAYERS, SWITCHED_LAYERS, type SwitchedLayer } from '../../src/graphql/layers.ts';
import { readPage } from '../docs/pages.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';

describe('docs/layers.md', () => {
  it('draws the layers in the order in which they stand, with the switches that there are', async () => {
    const rows = [...(await readPage('docs/layers.md')).matchAll(/^\| `([a-z-]+)` \|.*\| (yes )?\|$/gm)];
    expect(rows.map(([, layer]) => layer)).toEqual(LAYERS);
    const switched = rows.filter(([, , off]) => off !== undefined).map(([, layer]) => layer);
    expect(switched.sort()).toEqual([...SWITCHED_LAYERS].sort());
  });
});

describe('the way that an operation took', () => {
  const QUERY = 'query Me { client { id } }';
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
      type: 'query',
      operationName: 'Me',
      of: 'client',
      clientId: gateway.sandbox.clientId,
      milliseconds: expect.any(Number),
      cost: 1,
    });
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toContain(
      'pasarela_operation_ways_total{transport="fast path",document="kept",executor="plan",because="",shared="false"} 1',
    );
  });

  it('is told with how long the operation waited for the event log, where it read that', async () => {
    await using gateway = await startGateway();
    await gateway.query('query Read { events(first: 1) { nodes { id } } }');
    await gateway.query('query Other { client { id } }');
    const told = gateway.log
      .map((line) => JSON.parse(line))
      .filter(({ message }) => message === 'An operation has its result')
      .map(({ operationName, eventLogMs }) => [operationName, typeof eventLogMs]);
    expect(told).toEqual([
      ['Read', 'number'],
      ['Other', 'undefined'],
    ]);
  });

  it('is told with how many REST calls the operation made, how long they waited, and how long it waited for its seat', async () => {
    await using gateway = await startGateway({
      webhooks: false,
      config: { upstreamCallsPerCaller: 1, listsMaxAgeMs: 0, upstreamReport: true },
    });
    await gateway.query('query Known { client { id } }');
    const joins = ['first', 'second', 'third', 'fourth'].map(
      (name) => `query Join { ${name}: client { accounts { nodes { bank { id } owner { __typename } } } } }`,
    );
    const answers = await Promise.all(joins.map((join) => gateway.query(join)));
    const [known, first, ...others] = gateway.log
      .map((line) => JSON.parse(line))
      .filter(({ message }) => message === 'An operation has its result');
    // The probe of the token.
    expect(known).toMatchObject({ calls: 1 });
    // Accounts, customers and banks leave one after the other.
    const reported = answers.map(({ extensions }) => extensions?.['upstream'] as { waited: number }[]);
    const waited = reported.find(({ length }) => length === 3)?.reduce((sum, call) => sum + call.waited, 0);
    expect(first).toMatchObject({ calls: 3, callWaitMs: expect.closeTo(waited ?? Number.NaN, 0) });
    // The banks are kept by then.
    expect(others.map(({ calls }) => calls)).toEqual([2, 2, 2]);
    const waiting = others.filter(({ seatMs }) => seatMs !== undefined);
    expect(waiting).not.toEqual([]);
    for (const { seatMs, milliseconds } of waiting) expect(seatMs).toBeLessThanOrEqual(milliseconds);
    expect([known.seatMs, first.seatMs]).toEqual([undefined, undefined]);
  });

  it('is told with how long the operation waited for a list to be read to its end, as is whose list it was', async () => {
    await using gateway = await startGateway({ webhooks: false, sandboxOptions: { customers: 250 } });
    await gateway.query(
      'query Join { client { customers(first: 100) { nodes { accounts { nodes { id } } } } } }',
    );
    await gateway.query('query Other { client { id } }');
    const lines = gateway.log.map((line) => JSON.parse(line));
    const [walk, ...others] = lines.filter(({ message }) => message === 'A list has been read');
    expect(others).toEqual([]);
    expect(walk).toMatchObject({ clientId: gateway.sandbox.clientId, items: expect.any(Number) });
    const [joined, other] = lines.filter(({ message }) => message === 'An operation has its result');
    // A hundred customers wait for one walk, which the first of them has begun.
    expect(joined.walkMs).toBeGreaterThan(0);
    expect(joined.walkMs).toBeLessThanOrEqual(joined.milliseconds);
    expect(other.walkMs).toBeUndefined();
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
      expect(await wayOf(gateway)).toEqual({
        transport: 'yoga',
        document: 'read',
        executor: 'graphql-js',
        because: 'plans are off',
        isShared: false,
      });
    }
    const told = gateway.log
      .map((line) => JSON.parse(line))
      .filter(({ message }) => message === 'An operation has its result');
    expect(told.map(({ executor, because }) => [executor, because])).toEqual(
      Array.from({ length: 3 }, () => ['graphql-js', 'plans are off']),
    );
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toContain(
      'pasarela_operation_ways_total{transport="yoga",document="read",executor="graphql-js",because="plans are off",shared="false"} 3',
    );
    expect(metrics).toMatch(/pasarela_build_info\{.*layers_off="fast-path,kept-documents,plans"\} 1/);
  });

  it('is that of another where its result is', async () => {
    await using gateway = await startGateway({ config: { upstreamReport: true } });
    const document = '{ client { customers { totalCount } } }';
    const ways = await Promise.all(Array.from({ length: 8 }, () => wayOf(gateway, document)));
    expect(ways.filter((way) => (way as { isShared: boolean }).isShared).length).toBeGreaterThan(0);
  });
});
