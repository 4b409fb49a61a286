import type { Requester } from '../common/party.ts';
import type { Urgency } from '../common/turns.ts';
import type { Leaver } from '../common/waiters.ts';
import type { Authorize } from '../upstream/call/credential.ts';
import type { UpstreamHttp } from '../upstream/call/http.ts';
import { type CallRecord, createRest, type Rest, type RestOptions } from '../upstream/call/rest.ts';
import type { Budget } from './budget.ts';
import type { Report } from './report.ts';

export interface CallsOptions {
  readonly http: UpstreamHttp;
  readonly upstreamTimeoutMs: number;
  readonly onCall: (call: CallRecord) => void;
}

/** How an operation makes its REST calls, where that is not the same for all of them. */
export interface RestWays extends Pick<RestOptions, 'over' | 'identifies' | 'identity'> {
  readonly coalesce?: RestOptions['coalesce'] | undefined;
  readonly leaver?: Leaver | undefined;
  readonly urgency?: Urgency;
}

/** Makes what one operation calls the REST service with: every call carries its id and its deadline, and is reported. */
export class Calls {
  readonly #options: CallsOptions;
  readonly #requestId: string;
  readonly #urgency: Urgency;
  readonly #budget: Budget;
  readonly #report: Report;
  #wereRefused = false;

  constructor(options: CallsOptions, requestId: string, urgency: Urgency, budget: Budget, report: Report) {
    this.#options = options;
    this.#requestId = requestId;
    this.#urgency = urgency;
    this.#budget = budget;
    this.#report = report;
  }

  /**
   * Whether the service has refused the caller's credential for one of them, also one of work that may outlive the operation: not for one
   * that asked who is calling, or came with an API key.
   */
  get wereRefused(): boolean {
    return this.#wereRefused;
  }

  /** @param requester for whom the calls are made. */
  rest(
    clientId: string,
    requester: Requester,
    authorize: Authorize,
    { identity, leaver, coalesce, over, identifies, urgency = this.#urgency }: RestWays,
  ): Rest {
    const note = ({ status }: CallRecord): void => {
      this.#wereRefused ||= status === 401 && over !== 'probes';
    };
    return createRest({
      http: this.#options.http,
      clientId,
      identity,
      requester,
      authorize,
      headers: { 'x-request-id': this.#requestId, accept: 'application/json' },
      timeoutMs: this.#options.upstreamTimeoutMs,
      deadline: this.#budget.deadline,
      over,
      identifies,
      urgency,
      ...(leaver === undefined ? {} : { leaver }),
      ...(coalesce === undefined ? {} : { coalesce }),
      onWait: () => this.#report.waitsForWalk(),
      onCall: (call) => {
        this.#report.add(call);
        note(call);
        if (!call.cached) this.#options.onCall(call);
      },
      // The operation may still wait for the walk of a list that it has begun.
      onDetachedCall: (call) => {
        note(call);
        this.#options.onCall(call);
      },
    });
  }
}
