import type { AlarmClock } from '../common/alarms.ts';
import type { Logger } from '../common/logger.ts';
import type { Turns } from '../common/turns.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { OwnAddresses } from './own-addresses.ts';
import type { RestService } from './rest-service.ts';
import type { ServerConfig } from './server-config.ts';

/** The parts from which all others of a gateway are made. */
export interface Base {
  readonly config: ServerConfig;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** The clock for the waits of subscriptions. */
  readonly clock: AlarmClock;
  /** Gives the turns in which work of all callers begins. */
  readonly turns: Turns;
  readonly addresses: OwnAddresses;
  readonly restService: RestService;
}
