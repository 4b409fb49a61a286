import type { EventLog } from './log.ts';

/** A log that passes every call on to another log. Subclasses override what they change. */
export abstract class WrappedLog<L extends EventLog = EventLog> implements EventLog {
  protected readonly log: L;

  constructor(log: L) {
    this.log = log;
  }

  append(...args: Parameters<EventLog['append']>) {
    return this.log.append(...args);
  }

  recall(...args: Parameters<EventLog['recall']>) {
    return this.log.recall(...args);
  }

  readAfter(...args: Parameters<EventLog['readAfter']>) {
    return this.log.readAfter(...args);
  }

  readBefore(...args: Parameters<EventLog['readBefore']>) {
    return this.log.readBefore(...args);
  }

  wholeSince(clientId: string) {
    return this.log.wholeSince(clientId);
  }

  givenUpTo(clientId: string) {
    return this.log.givenUpTo(clientId);
  }

  head(clientId: string) {
    return this.log.head(clientId);
  }

  bounds(clientId: string) {
    return this.log.bounds(clientId);
  }

  sealKey(clientId: string) {
    return this.log.sealKey(clientId);
  }

  follow(...args: Parameters<EventLog['follow']>) {
    return this.log.follow(...args);
  }

  watch(...args: Parameters<EventLog['watch']>) {
    return this.log.watch(...args);
  }

  health() {
    return this.log.health();
  }

  stop(withinMs?: number) {
    return this.log.stop(withinMs);
  }
}
