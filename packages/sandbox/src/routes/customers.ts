import type { RestAnswers } from '../endpoints.ts';
import { type App, answer, operation } from '../http.ts';
import { cutPage } from '../paging.ts';
import { viewCustomer } from '../views.ts';
import type { World } from '../world.ts';

/** Endpoint 7. */
export function customerRoutes(app: App, world: World): void {
  app.get('/v1/clients/:clientId/customers', operation('Customers', 'ListCustomers'), (c) => {
    const customers = world.state.customers.ofClient(c.get('clientId'));
    const { page, size, total, items } = cutPage(c, customers, world.choices.openListPage);
    const data = items.map((customer) => viewCustomer(world, customer));
    return answer<RestAnswers['GET /v1/clients/{clientId}/customers']>(c, world, {
      currentPage: page,
      perPage: size,
      totalItems: total,
      data,
    });
  });
}
