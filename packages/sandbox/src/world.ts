import type { Calls } from './calls.ts';
import type { Choices } from './choices.ts';
import type { ClabeIssuer } from './clabe.ts';
import type { Clock } from './clock.ts';
import type { Deliveries } from './deliveries.ts';
import type { Ids } from './ids.ts';
import type { Ledger } from './ledger.ts';
import type { Logger } from './logger.ts';
import type { Pending } from './pending.ts';
import type { State } from './state.ts';

/** The parts of one sandbox, handed to every route and operation. */
export interface World {
  readonly choices: Choices;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly clabes: ClabeIssuer;
  readonly state: State;
  readonly ledger: Ledger;
  readonly pending: Pending;
  readonly deliveries: Deliveries;
  readonly calls: Calls;
  /** Hosts that webhooks may be delivered to, besides those of loopback. */
  readonly webhookHosts: readonly string[];
  readonly logger: Logger;
  /** Key of the access tokens' HS256 signature. */
  readonly tokenKey: Uint8Array;
  /** Where it is reached, such as `http://127.0.0.1:4010`; known once it listens, and empty until then. */
  origin: string;
}
