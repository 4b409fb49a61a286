import { serverAudits } from 'graphql-http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { VARIANTS } from '../helpers/variants.ts';

describe.each(VARIANTS)('on %s', (_variant, sandboxOptions) => {
  let gateway: RunningGateway;
  beforeAll(async () => {
    gateway = await startGateway({ sandboxOptions });
  });
  afterAll(() => gateway.stop());

  describe('GraphQL over HTTP', () => {
    const audits = serverAudits({ url: () => gateway.graphql, fetchFn: fetch });

    it('is audited', () => {
      expect(audits.filter(({ name }) => name.startsWith('MUST')).length).toBeGreaterThan(10);
    });

    it.each(
      audits.filter(({ name }) => name.startsWith('MUST')).map((audit) => [audit.name, audit] as const),
    )('%s', async (_, audit) => {
      const result = await audit.fn();
      expect(result.status === 'ok' ? '' : result.reason).toBe('');
    });
  });
});
