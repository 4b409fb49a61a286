import { expect, it } from 'vitest';
import { openRestService } from '../../src/app/rest-service.ts';
import { Turns } from '../../src/common/turns.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { gatewayConfig } from '../helpers/gateway-config.ts';
import { CLIENT_ID } from '../helpers/http-stub.ts';
import { stillTime } from '../helpers/still-time.ts';

it('the log says whose calls are suspended, and when they are made again: of a subject or an address no more than that', async () => {
  using time = stillTime();
  const lines: string[] = [];
  const logger = collectingLogger(lines);
  const { breaker, http } = openRestService(gatewayConfig('http://127.0.0.1:9', 'nowhere'), {
    logger,
    metrics: createMetrics(() => new Map(), logger),
    turns: new Turns(() => performance.now()),
  });
  const groups = [`client ${CLIENT_ID}`, `customer ${CLIENT_ID} alma`, 'subject alma', 'address 192.0.2.1'];
  for (const group of groups) {
    for (let failures = 0; failures < 20; failures += 1) breaker.admit('money', group)?.end('failed');
    // Somebody else is answered, or the calls of everybody would be suspended.
    breaker.admit('money', 'somebody')?.end('answered');
  }
  await time.pass(2_000);
  breaker.admit('money', 'subject alma')?.end('answered');
  for (let failures = 0; failures < 20; failures += 1)
    breaker.admit('reads', `${failures}`)?.end('unreachable');
  await time.pass(2_000);
  breaker.admit('reads', 'somebody')?.end('answered');
  const suspended = { level: 'warn', message: 'REST calls are suspended, as the service keeps failing' };
  const resumed = { level: 'info', message: 'REST calls are suspended no longer' };
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { ...suspended, kind: 'money', of: 'client', clientId: CLIENT_ID },
    { ...suspended, kind: 'money', of: 'customer', clientId: CLIENT_ID },
    { ...suspended, kind: 'money', of: 'subject' },
    { ...suspended, kind: 'money', of: 'address' },
    { ...resumed, kind: 'money', of: 'subject' },
    { ...suspended, kind: 'reads', of: 'everybody' },
    { ...resumed, kind: 'reads', of: 'everybody' },
  ]);
  await http.close();
});
