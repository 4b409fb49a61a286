import { z } from 'zod';
import { parseCents } from './amounts.ts';
import { activeCredential, issueToken } from './auth.ts';
import { refundReceived } from './control-refunds.ts';
import { viewDelivery, viewLedger, viewSeeded } from './control-views.ts';
import { dataError, notFound } from './errors.ts';
import { type Faults, faultRule } from './faults.ts';
import { type App, operation, pathId, readBody } from './http.ts';
import { receiveSpeiCredit } from './operations/credits.ts';
import { someExternalPayer } from './operations/instruments.ts';
import type { RequestCounts } from './request-counts.ts';
import type { Seeded } from './seed.ts';
import type { Client, Token } from './state.ts';
import { formatTimestamp } from './timestamps.ts';
import { viewTransaction } from './views.ts';
import type { World } from './world.ts';

const speiCredit = z.strictObject({
  clabe: z.string(),
  amount: z.string(),
  payerName: z.string().min(1).default('Ordenante Externo'),
  concept: z.string().default('Pago recibido'),
});

const loss = z.strictObject({
  type: z.enum(['MONEY_IN', 'STATUS_UPDATE', 'CEP']),
  times: z.number().int().min(1).optional(),
});

/** At most a hundred years: more is a typing error. */
const step = z.strictObject({ advanceSeconds: z.number().min(0).max(3.2e9) });

/** The control of the sandbox, for people and tests: no credentials, no faults (docs/sandbox.md). */
export function controlRoutes(
  app: App,
  world: World,
  seeded: readonly Seeded[],
  faults: Faults,
  counts: RequestCounts,
): void {
  const { clock, state, deliveries } = world;
  app.use('/sandbox/*', operation('Sandbox', 'Control'));
  const time = () => ({ now: formatTimestamp(clock.now(), 'iso'), speed: clock.speed });

  app.get('/sandbox', async (c) => {
    const described = [];
    for (const one of seeded) described.push(viewSeeded(world, one, await currentToken(world, one.client)));
    const [demo, ...otherClients] = described;
    return c.json({ ...demo, otherClients, clock: time() });
  });

  app.post('/sandbox/spei-credits', async (c) => {
    const body = await readBody(c, speiCredit);
    const amount = parseCents(body.amount);
    if (amount === undefined || amount <= 0n) {
      throw dataError('body.amount: a string above zero with two decimals, such as "1250.00"');
    }
    const account = state.accountByClabe(body.clabe);
    if (account === undefined) throw notFound('clabe_not_found');
    const payer = someExternalPayer(world, account.clientId, body.payerName);
    const credit = {
      account,
      payer,
      amount,
      concept: body.concept,
      reference: world.ids.digits('reference', 7),
    };
    const arrived = receiveSpeiCredit(world, credit);
    const sent = await arrived.deliveries;
    return c.json(
      { transaction: viewTransaction(world, arrived.transaction), deliveries: sent.map(viewDelivery) },
      201,
    );
  });

  app.post('/sandbox/refunds', async (c) => c.json(await refundReceived(c, world, seeded), 201));

  app.post('/sandbox/faults', async (c) => {
    const rule = await readBody(c, faultRule);
    faults.add(rule);
    return c.json(rule, 201);
  });
  app.delete('/sandbox/faults', (c) => {
    faults.clear();
    return c.json({ faults: [] });
  });

  app.post('/sandbox/lost-messages', async (c) => {
    const { type, times } = await readBody(c, loss);
    deliveries.lose(type, times);
    return c.json({ type, times }, 201);
  });
  app.delete('/sandbox/lost-messages', (c) => {
    deliveries.loseNothing();
    return c.json({ lost: [] });
  });

  app.get('/sandbox/clock', (c) => c.json(time()));
  app.post('/sandbox/clock', async (c) => {
    const { advanceSeconds } = await readBody(c, step);
    await clock.advance(advanceSeconds * 1000);
    return c.json(time());
  });

  app.get('/sandbox/ledger', (c) => c.json(viewLedger(world)));

  app.get('/sandbox/deliveries', (c) => c.json({ deliveries: deliveries.all().map(viewDelivery) }));
  app.post('/sandbox/deliveries/:id/resend', async (c) => {
    const delivery = deliveries.get(pathId(c, 'id'));
    if (delivery === undefined) throw notFound('delivery_not_found');
    await deliveries.resend(delivery);
    return c.json(viewDelivery(delivery));
  });

  app.get('/sandbox/requests', (c) => c.json({ total: counts.total(), counts: counts.byRoute() }));
  app.delete('/sandbox/requests', (c) => {
    counts.clear();
    return c.json({ total: 0, counts: {} });
  });
}

/** The client's newest token that is still good for a while, or a fresh one. */
export async function currentToken(world: World, client: Client): Promise<Token> {
  const soon = Date.now() + (world.choices.tokenTtlSeconds * 1000) / 5;
  const newest = world.state.tokens
    .values()
    .filter(({ clientId, expiresAt }) => clientId === client.id && expiresAt > soon)
    .toArray()
    .at(-1);
  return newest ?? issueToken(world, client, activeCredential(client));
}
