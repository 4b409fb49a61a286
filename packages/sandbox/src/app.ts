import { Hono } from 'hono/tiny';
import { authenticate } from './auth.ts';
import type { Control } from './control.ts';
import { controlRoutes } from './control-routes.ts';
import { ApiError, errorResponse, notFound } from './errors.ts';
import { delayWork, injectFaults } from './faults.ts';
import { type App, type Ctx, type Env, nameOperation } from './http.ts';
import { idempotency } from './idempotency.ts';
import { magicAnswers } from './magic.ts';
import { ownHostsOnly } from './own-hosts-only.ts';
import { recordCalls } from './record-calls.ts';
import { countRequests } from './request-counts.ts';
import { accountRoutes } from './routes/accounts.ts';
import { bankRoutes } from './routes/banks.ts';
import { credentialRoutes } from './routes/credentials.ts';
import { customerRoutes } from './routes/customers.ts';
import { instrumentRoutes } from './routes/instruments.ts';
import { pageRoutes } from './routes/pages.ts';
import { transactionRoutes } from './routes/transactions.ts';
import { webhookRoutes } from './routes/webhooks.ts';
import type { World } from './world.ts';

/**
 * The service under /v1, with faults and credentials; its control under /sandbox, its console and its other pages, with neither.
 *
 * A request to the service meets faults first, so that a fault may befall a refusal, then its credentials, the Idempotency-Key of money
 * out and the delay of a fault, then its route. An answer goes back the same way.
 *
 * @param hosts names that it answers to, besides those of loopback and the address that it listens on.
 */
export function buildApp(world: World, control: Control, hosts: readonly string[]): App {
  const app = new Hono<Env>();

  const refuse = (c: Ctx, error: ApiError) => {
    // Pages instead of JSON are a trait of the service, not of its control.
    const pages = c.req.path.startsWith('/v1') ? world.choices.errorPages : 'json';
    return errorResponse(c, error, c.get('operation'), pages);
  };
  app.onError((error, c) => {
    if (error instanceof ApiError) return refuse(c, error);
    world.logger.error({ err: error, path: c.req.path }, 'the sandbox failed to serve a request');
    return refuse(c, new ApiError(500, 'INTERNAL', 'Internal error.'));
  });
  app.notFound((c) => refuse(c, notFound('route_not_found')));

  app.use('*', nameOperation, ownHostsOnly(world, hosts));
  app.use(
    '/v1/*',
    countRequests(control.counts),
    recordCalls(world.calls, world.clock),
    magicAnswers,
    injectFaults(control.faults, world),
    authenticate(world),
  );
  app.use('/v1/transactions/money_out', idempotency(world));
  app.use('/v1/*', delayWork);
  credentialRoutes(app, world);
  bankRoutes(app, world);
  accountRoutes(app, world);
  customerRoutes(app, world);
  instrumentRoutes(app, world);
  transactionRoutes(app, world);
  webhookRoutes(app, world);

  controlRoutes(app, control);
  pageRoutes(app, world, control);
  return app;
}
