import { control, startGateway } from '../../helpers/gateway.ts';
import { subscribeOverWebSocket } from '../../helpers/subscriber.ts';
import { inject } from '../../scenarios/faults/payments.ts';
import { deliverTo, goOn, world } from './world.ts';

/** Several calls, of which a caller with one seat has all but the first wait. */
const READS = `{ client { accounts(first: 2) { nodes { id } } instruments(first: 2) { nodes { id } } }
  banks { id } }`;

const STATUS = 'subscription ($id: ID!) { transactionStatus(transactionId: $id) { transaction { status } } }';
/** The first readings of the schedule are due every 2 s, at a rate of one a second. */
const FOLLOWED = 8;

/** A gateway whose callers have one call at a time, before a service that fails. */
export const SERVICE = world(
  'the service and its callers',
  async (cleanup) => {
    const gateway = cleanup.use(
      await startGateway({
        webhooks: false,
        config: {
          pollsPerSecond: 1,
          upstreamCallsPerCaller: 1,
          upstreamTimeoutMs: 8_000,
          operationTimeoutMs: 30_000,
        },
      }),
    );
    const { sandbox, url, query } = gateway;
    /** Callers read while the service does this. */
    const readWhile = async (fault: unknown, ended: AbortSignal) => {
      await inject(sandbox, { path: '/v1/' }, fault);
      await goOn(ended, () => query(READS));
      await control(sandbox, 'DELETE', '/sandbox/faults');
    };
    /** Follows credits that stay as they are. */
    const follow = async (ended: AbortSignal) => {
      await using streams = new AsyncDisposableStack();
      const { accounts } = await control(sandbox, 'GET', '/sandbox');
      for (let count = 0; count < FOLLOWED; count += 1) {
        const credit = { clabe: accounts[0].clabe, amount: '1.00' };
        const { transaction } = await control(sandbox, 'POST', '/sandbox/spei-credits', credit);
        const operation = { query: STATUS, variables: { id: transaction.id } };
        streams.use(subscribeOverWebSocket(gateway.graphql, sandbox.accessToken, operation));
      }
      await goOn(ended, () => Promise.resolve());
    };
    return { url, query, deliver: () => deliverTo(gateway), readWhile, follow };
  },
  [
    {
      alerts: ['PasarelaOperationErrors'],
      fault: 'A release of an app asks for ids that are none.',
      cause: ({ query }, ended) => goOn(ended, () => query('{ bank(id: "none") { id } }')),
    },
    {
      alerts: ['PasarelaReadingsWait'],
      fault: 'More transactions are followed than UPSTREAM_POLLS_PER_SECOND lets be read.',
      cause: ({ follow }, ended) => follow(ended),
    },
    {
      alerts: ['PasarelaUpstreamQueue'],
      fault: 'The service answers after 1.5 s, and a caller asks for more at a time than it has seats.',
      cause: ({ readWhile }, ended) => readWhile({ delayMs: 1_500 }, ended),
    },
    {
      alerts: ['PasarelaUpstreamSlow'],
      fault: 'The service answers after 3 s.',
      cause: ({ readWhile }, ended) => readWhile({ delayMs: 3_000 }, ended),
    },
    {
      alerts: ['PasarelaUpstreamRefuses'],
      fault: 'The service answers that it has been asked too often.',
      cause: ({ readWhile }, ended) => readWhile({ status: 429 }, ended),
    },
    {
      alerts: ['PasarelaUpstreamFailing'],
      fault: 'The service answers 500.',
      cause: ({ readWhile }, ended) => readWhile({ status: 500 }, ended),
    },
  ],
);
