import type { RestAnswers } from '../endpoints.ts';
import { type App, answer, operation } from '../http.ts';
import { cutPage } from '../paging.ts';
import { viewBank } from '../views.ts';
import type { World } from '../world.ts';

/** Endpoint 3. */
export function bankRoutes(app: App, world: World): void {
  app.get('/v1/banks', operation('Banks', 'ListBanks'), (c) => {
    const { page, size, total, items } = cutPage(c, [...world.state.banks.values()], world.choices.bankPage);
    const banks = items.map((bank) => viewBank(world, bank));
    return answer<RestAnswers['GET /v1/banks']>(c, world, {
      total_banks: total,
      page,
      page_size: size,
      banks,
    });
  });
}
