import { statusUpdateMessage } from '../messages.ts';
import type { Customer } from '../state.ts';
import type { World } from '../world.ts';

/** Has the provider's KYB checks pass on the clock: PENDING, then VALIDATED (docs/upstream-api.md, "customerValidationStatus"). */
export function validateLater(world: World, customer: Customer): void {
  const end = world.pending.add(customer.id, {
    done: (tell) => {
      customer.validationStatus = 'VALIDATED';
      customer.updatedAt = world.clock.now();
      const change = { resource: 'CUSTOMER', id: customer.id, status: customer.validationStatus };
      tell(statusUpdateMessage(world, customer.clientId, change));
    },
  });
  world.clock.schedule(customer.createdAt + world.choices.kybSeconds * 1000, () => end('done'));
}
