import type { AlarmClock } from '../common/alarms.ts';
import type { Logger } from '../common/logger.ts';
import type { Turns } from '../common/turns.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { OwnAddresses } from './own-addresses.ts';
import type { RestService } from './rest-service.ts';
import type { ServerConfig } from './server-config.ts';

/** What every part of a gateway is made from. */
export interface Base {
  readonly config: ServerConfig;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** What subscriptions wait by. */
  readonly clock: AlarmClock;
  /** When a piece of work begins, of all callers. */
  readonly turns: Turns;
  readonly addresses: OwnAddresses;
  readonly restService: RestService;
}
