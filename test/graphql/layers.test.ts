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
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toMatch(/pasarela_build_info\{.*layers_off="fast-path,kept-documents,plans"\} 1/);
  });

  it('is that of another where its result is', async () => {
    await using gateway = await startGateway({ config: { upstreamReport: true } });
    const document = '{ client { customers { totalCount } } }';
    const ways = await Promise.all(Array.from({ length: 8 }, () => wayOf(gateway, document)));
    expect(ways.filter((way) => (way as { isShared: boolean }).isShared).length).toBeGreaterThan(0);
  });
});
