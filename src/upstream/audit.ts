import type { Optional } from './call/json.ts';

/** When each thing happened, as the upstream writes it (docs/upstream-api.md, "Conventions": four spellings, `None` or null). */
export interface Audit {
  readonly createdAt?: Optional;
  readonly updatedAt?: Optional;
  readonly deletedAt?: Optional;
  readonly blockedAt?: Optional;
  readonly activatedAt?: Optional;
  readonly suspendedAt?: Optional;
}
