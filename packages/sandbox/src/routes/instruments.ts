import { z } from 'zod';
import { isClabe } from '../clabe.ts';
import type { RestAnswers } from '../endpoints.ts';
import { dataError, notFound } from '../errors.ts';
import { type App, answer, check, operation, pathId, readBody, uuid } from '../http.ts';
import { registerInstrument } from '../operations/instruments.ts';
import { checkOwnClient } from '../operations/requests.ts';
import { cutPage } from '../paging.ts';
import type { RestNewInstrument } from '../rest.ts';
import type { CardDetail, ClabeDetail, Instrument } from '../state.ts';
import { viewInstrument } from '../views.ts';
import type { World } from '../world.ts';

const holderName = z
  .string()
  .min(1)
  .refine((name) => [...name].length <= 40, 'at most 40 characters');

const debitCard = z.object({
  destination_bank_id: uuid,
  card_number: z.string().regex(/^\d{16}$/, '16 digits'),
  holder_name: holderName,
});

const registration = z.object({
  source_bank_id: uuid,
  client_id: uuid,
  customer_id: uuid.optional(),
  type: z.literal('RECEIVER'),
  rfc: z.string().min(1),
  alias: z.string().min(1),
  debit_card: debitCard.optional(),
  virtual_clabe: z.record(z.string(), z.unknown()).optional(),
  instrumentKind: z.string().optional(),
}) satisfies z.ZodType<RestNewInstrument>;

/** Endpoints 8, 9 and 10. */
export function instrumentRoutes(app: App, world: World): void {
  const { state, choices } = world;

  app.get('/v1/clients/:clientId/instruments', operation('Instruments', 'ListInstruments'), (c) => {
    const customerId = c.req.query('customer_id');
    if (customerId !== undefined) check(uuid, customerId, 'customer_id');
    const instruments =
      customerId === undefined
        ? state.instruments.ofClient(c.get('clientId'))
        : ofCustomer(world, c.get('clientId'), customerId.toLowerCase());
    const { page, size, total, items } = cutPage(c, instruments, choices.instrumentPage);
    const data = items.map((instrument) => viewInstrument(world, instrument));
    return answer<RestAnswers['GET /v1/clients/{clientId}/instruments']>(c, world, {
      data,
      currentPage: page,
      perPage: size,
      totalItems: total,
    });
  });

  app.get(
    '/v1/clients/:clientId/instruments/:instrumentId',
    operation('Instruments', 'GetInstrument'),
    (c) => {
      const instrument = state.instruments.get(pathId(c, 'instrumentId'));
      if (instrument?.clientId !== c.get('clientId')) throw notFound('instrument_not_found');
      return answer<RestAnswers['GET /v1/clients/{clientId}/instruments/{instrumentId}']>(
        c,
        world,
        viewInstrument(world, instrument),
      );
    },
  );

  app.post('/v1/clients/:clientId/instruments', operation('Instruments', 'CreateInstrument'), async (c) => {
    const clientId = c.get('clientId');
    const body = await readBody(c, registration);
    checkOwnClient(world, clientId, body.client_id);
    const customerId = body.customer_id?.toLowerCase();
    if (customerId !== undefined && state.customers.get(customerId)?.clientId !== clientId) {
      throw notFound('customer_not_found');
    }
    checkBank(world, body.source_bank_id);
    const { bankId, detail } = readReceiver(world, body);
    const { alias, rfc } = body;
    const instrument = registerInstrument(world, { clientId, customerId, bankId, alias, rfc, detail });
    return answer<RestAnswers['POST /v1/clients/{clientId}/instruments']>(
      c,
      world,
      viewInstrument(world, instrument),
      choices.instrumentCreated,
    );
  });
}

function ofCustomer({ state }: World, clientId: string, customerId: string): Instrument[] {
  const made = state.instruments.made(clientId).filter((instrument) => instrument.customerId === customerId);
  const numbered = state.instruments.get(state.crowd?.instrumentIdOfCustomer(customerId) ?? '');
  return numbered?.clientId === clientId ? [numbered, ...made] : made;
}

function readReceiver(
  world: World,
  body: z.infer<typeof registration>,
): { bankId: string; detail: CardDetail | ClabeDetail } {
  const { debit_card: card, virtual_clabe: clabe } = body;
  if ((card === undefined) === (clabe === undefined)) {
    throw dataError('The body must include either debit_card or virtual_clabe.');
  }
  if (card !== undefined) {
    if (world.choices.instrumentKindRequired && body.instrumentKind !== 'debit_card') {
      throw dataError('body.instrumentKind: debit_card is required with a card.');
    }
    return {
      bankId: checkBank(world, card.destination_bank_id),
      detail: {
        kind: 'card',
        cardNumber: card.card_number,
        expirationDate: undefined,
        holderName: card.holder_name,
      },
    };
  }
  return readVirtualClabe(world, clabe ?? {});
}

function readVirtualClabe(world: World, payload: Record<string, unknown>) {
  const names = world.choices.virtualClabeFields;
  const fields = z.object({
    bank: uuid,
    clabe: z.string().refine(isClabe, 'an 18-digit CLABE'),
    holder: holderName,
  });
  const given = { bank: payload[names.bank], clabe: payload[names.clabe], holder: payload[names.holder] };
  const { bank, clabe, holder } = check(
    fields,
    given,
    `body.virtual_clabe (${names.bank}, ${names.clabe}, ${names.holder})`,
  );
  const detail: ClabeDetail = {
    kind: 'clabe',
    accountNumber: clabe.slice(6),
    clabeNumber: clabe,
    holderName: holder,
  };
  return { bankId: checkBank(world, bank), detail };
}

function checkBank(world: World, id: string): string {
  const bank = world.state.banks.get(id.toLowerCase());
  if (bank === undefined) throw notFound('bank_not_found');
  return bank.id;
}
