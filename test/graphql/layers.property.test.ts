import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { SWITCHED_LAYERS, type SwitchedLayer } from '../../src/graphql/layers.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { control, type GraphQLAnswer, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { documentsOfTheSuite } from './documents.ts';

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

/** What a busy machine makes slow has the same answer. */
const PATIENT = { operationTimeoutMs: 120_000, upstreamTimeoutMs: 60_000 };

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
    reference = await startGateway({ sandbox, webhooks: false, config: PATIENT });
    const { transactions } = await control(sandbox, 'GET', '/sandbox');
    variables = { first: 3, id: transactions.moneyOutId };
  });
  afterAll(async () => {
    await reference.stop();
    await sandbox.stop();
  });

  it.each(COMBINATIONS)('%#: without some of them', async (...off) => {
    expect(documents.length).toBeGreaterThan(20);
    const layersOff = new Set(off);
    await using gateway = await startGateway({ sandbox, webhooks: false, config: { ...PATIENT, layersOff } });
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
