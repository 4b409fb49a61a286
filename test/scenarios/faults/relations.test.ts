import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { newToken } from '../../helpers/new-token.ts';
import { until } from '../../helpers/until.ts';
import { VARIANTS } from '../../helpers/variants.ts';
import { documentOf, inject, MUTATIONS, movementsOf, payable } from './payments.ts';

/** Everything beneath a transaction that takes a call of its own, and what is beneath that. */
const RELATED = `id amount { amount } audit { createdAt } cep { status }
  bank { id }
  client { accounts { nodes { id instrument { id } } } customers { totalCount } instruments { totalCount } }
  source { bank { id } instrument { id account { id } } }
  destination { bank { id } instrument { id } }
  originalTransaction { id bank { id } source { instrument { id } } }`;
const ORIGINAL = `original { id bank { id } source { instrument { id } } destination { bank { id } instrument { id } } }`;

const EVERYTHING = ['all that can be read', '/v1/*'] as const;
const READS: readonly (readonly [what: string, path: string])[] = [
  EVERYTHING,
  ['the catalog of banks', '/v1/banks'],
  ['an instrument', '/v1/clients/*/instruments/*'],
  ['the lists', '/v1/clients/*/accounts'],
  ['a transaction', '/v1/clients/*/transactions/*'],
];

const FAULTS: readonly (readonly [what: string, fault: unknown])[] = [
  ['answers 500', { status: 500, body: 'Oops' }],
  ['answers 404', { status: 404 }],
  ['answers 401', { status: 401 }],
  ['answers with something else', { status: 200, body: { banks: 7, data: null } }],
  ['breaks off', 'truncate'],
  ['hangs', 'hang'],
];

describe.each(VARIANTS)('a payment that is done, over %s,', (variant, sandboxOptions) => {
  let gateway: RunningGateway;
  beforeAll(async () => {
    const config = { upstreamTimeoutMs: 1_500, operationTimeoutMs: 15_000 };
    gateway = await startGateway({ sandboxOptions, config });
  });
  afterAll(() => gateway.stop());

  let ask: RunningGateway['query'];
  beforeEach(async () => {
    await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
    ask = await newCaller();
    // The faults of the test before may have opened the circuit.
    await until(async () => (await ask('{ client { accounts { totalCount } } }')).errors === undefined);
  });

  /** The same caller under a token that the service has just given. */
  async function newCaller(): Promise<RunningGateway['query']> {
    const token = await newToken(gateway.sandbox);
    return (document, variables) => gateway.query(document, variables, { authorization: `Bearer ${token}` });
  }

  let payments = 0;
  describe.each(MUTATIONS)('%s,', (mutation) => {
    describe.each(variant === VARIANTS[0]?.[0] ? READS : [EVERYTHING])('stands when %s', (_what, path) => {
      it.each(FAULTS)('%s', async (_fault, fault) => {
        const { sandbox } = gateway;
        payments += 1;
        const { input, tag } = await payable(sandbox, mutation, `related ${payments}`);
        const isRefund = mutation === 'refundTransaction';
        // A refund reads its original before any money moves.
        if (isRefund) await inject(sandbox, { method: 'GET', path }, { delayMs: 0 }, 1);
        await inject(sandbox, { method: 'GET', path }, fault);

        const document = documentOf(mutation, RELATED, isRefund ? ORIGINAL : '');
        const { data, errors } = await ask(document, { input });
        const [movement, ...more] = await movementsOf(sandbox, tag);
        expect(more).toEqual([]);
        expect(data.result).toMatchObject({ replayed: false, moved: { id: movement?.transactionId } });
        for (const { extensions, path: at } of errors ?? []) {
          expect(extensions['code']).toMatch(/^(UPSTREAM_|UNAUTHENTICATED$)/);
          expect(at?.length).toBeGreaterThan(1);
        }

        // A token to which all is refused that can be read has been withdrawn, as far as anybody can tell: the next one gets the answer.
        const codes = errors?.map(({ extensions }) => extensions['code']) ?? [];
        if (path === EVERYTHING[1] && codes.includes('UNAUTHENTICATED')) {
          await control(sandbox, 'DELETE', '/sandbox/faults');
          ask = await newCaller();
        }
        const again = await ask(document, { input });
        expect(again.data.result).toMatchObject({ replayed: true, moved: { id: movement?.transactionId } });
      });
    });
  });
});
