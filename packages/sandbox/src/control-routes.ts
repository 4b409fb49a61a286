import { z } from 'zod';
import type { Control } from './control.ts';
import { completionOrder, creditOrder, receiptOrder, refundOrder } from './control-orders.ts';
import { notFound } from './errors.ts';
import { faultRule } from './faults.ts';
import { type App, operation, pathId, readBody } from './http.ts';
import { WEBHOOK_TYPES } from './state.ts';

export const loss = z.strictObject({
  type: z.enum(WEBHOOK_TYPES),
  times: z.number().int().min(1).optional(),
});

/** At most a hundred years: more is a typing error. */
export const step = z.strictObject({ advanceSeconds: z.number().min(0).max(3.2e9) });

const running = z.strictObject({ speed: z.number().min(0).max(100_000) });
/** Where a message goes that somebody wants in a handler of their own. */
const handler = z.strictObject({ url: z.url({ protocol: /^https?$/ }) });
const outage = z.strictObject({ down: z.boolean() });

/** The control of the sandbox, for people and tests: no credentials, no faults (docs/sandbox.md). */
export function controlRoutes(app: App, control: Control): void {
  app.use('/sandbox/*', operation('Sandbox', 'Control'));
  moneyRoutes(app, control);
  faultRoutes(app, control);
  clockRoutes(app, control);
  deliveryRoutes(app, control);
  lookRoutes(app, control);
}

/** Makes money move as other banks would. */
function moneyRoutes(app: App, control: Control): void {
  app.post('/sandbox/spei-credits', async (c) =>
    c.json(await control.credit(await readBody(c, creditOrder)), 201),
  );
  app.post('/sandbox/refunds', async (c) => c.json(control.refund(await readBody(c, refundOrder)), 201));
  app.post('/sandbox/completions', async (c) =>
    c.json(await control.complete(await readBody(c, completionOrder)), 201),
  );

  app.post('/sandbox/receipts', async (c) =>
    c.json(await control.receipt(await readBody(c, receiptOrder)), 201),
  );
}

/** What goes wrong, and which messages are lost. */
function faultRoutes(app: App, control: Control): void {
  const { faults } = control;
  app.get('/sandbox/faults', (c) => c.json({ faults: faults.all() }));
  app.post('/sandbox/faults', async (c) => {
    const rule = await readBody(c, faultRule);
    faults.add(rule);
    return c.json(rule, 201);
  });
  app.delete('/sandbox/faults', (c) => {
    faults.clear();
    return c.json({ faults: [] });
  });
  app.delete('/sandbox/faults/:id{\\d+}', (c) => {
    if (!faults.remove(Number(pathId(c, 'id')))) throw notFound('fault_not_found');
    return c.json({ faults: faults.all() });
  });

  app.post('/sandbox/lost-messages', async (c) => {
    const { type, times } = await readBody(c, loss);
    control.loseMessages(type, times);
    return c.json({ type, times }, 201);
  });
  app.delete('/sandbox/lost-messages', (c) => {
    control.loseNothing();
    return c.json({ lost: [] });
  });
}

function clockRoutes(app: App, control: Control): void {
  app.get('/sandbox/clock', (c) => c.json(control.time()));
  app.post('/sandbox/clock', async (c) => {
    const { advanceSeconds } = await readBody(c, step);
    return c.json(await control.advance(advanceSeconds));
  });
  app.patch('/sandbox/clock', async (c) => {
    const { speed } = await readBody(c, running);
    control.setSpeed(speed);
    return c.json(control.time());
  });
}

/** The webhooks that were sent, and sending them again. */
function deliveryRoutes(app: App, control: Control): void {
  app.patch('/sandbox/webhooks', async (c) => {
    const { down } = await readBody(c, outage);
    control.setWebhooksDown(down);
    return c.json({ down });
  });

  app.get('/sandbox/deliveries', (c) => c.json({ deliveries: control.deliveries() }));
  app.post('/sandbox/deliveries/:id/resend', async (c) => c.json(await control.resend(pathId(c, 'id'))));

  app.post('/sandbox/deliveries/:id/send', async (c) => {
    const { url } = await readBody(c, handler);
    return c.json(await control.sendTo(url, pathId(c, 'id')));
  });
}

/** What there is to be seen. */
function lookRoutes(app: App, control: Control): void {
  app.get('/sandbox', async (c) => {
    const [demo, ...otherClients] = await control.clients();
    return c.json({ ...demo, otherClients, clock: control.time() });
  });

  app.get('/sandbox/overview', (c) => c.json(control.overview()));
  app.get('/sandbox/transactions/:id', (c) => c.json(control.transaction(pathId(c, 'id'))));

  app.get('/sandbox/ledger', (c) => c.json(control.ledger()));

  app.get('/sandbox/requests', (c) => c.json(control.requests()));
  app.delete('/sandbox/requests', (c) => {
    control.counts.clear();
    return c.json({ total: 0, counts: {} });
  });
}
