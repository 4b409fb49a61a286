/**
 * Fan-out on stock graphql-ws, as its documentation sets it up, over Yoga's in-process pub/sub. `cepStatus` reads its
 * transaction from the upstream, and then waits for messages that name it.
 */
import { EventEmitter } from 'node:events';
import { createServer } from 'node:http';
import { useServer } from 'graphql-ws/use/ws';
import { createPubSub, createSchema } from 'graphql-yoga';
import { request } from 'undici';
import { WebSocketServer } from 'ws';
import { announce } from '../lib/announce.ts';
import { CLIENT_ID } from '../upstream/data.ts';
import { readText } from './read-text.ts';

type Event = Readonly<Record<string, unknown>>;

const [upstreamUrl = ''] = process.argv.slice(2);

// Ten thousand listeners are no leak here.
EventEmitter.defaultMaxListeners = 0;

const pubsub = createPubSub<{ moneyIn: [Event]; cepStatus: [id: string, update: Event] }>();
const schema = createSchema({
  typeDefs: /* GraphQL */ `
    type Query {
      ready: Boolean!
    }
    type Subscription {
      moneyIn: MoneyInEvent!
      cepStatus(transactionId: ID!): CepUpdate!
    }
    type CepUpdate {
      kind: String!
      transactionId: ID!
      cep: Cep!
    }
    type Cep {
      status: String!
      final: Boolean!
      beneficiaryName: String
    }
    type MoneyInEvent {
      id: ID!
      cursor: String!
      receivedAt: String!
      amount: Money!
      payer: Party!
      paymentConcept: String
      trackingKey: String
      decision: String!
    }
    type Money {
      amount: String!
      currency: String!
    }
    type Party {
      account: String
      name: String
    }
  `,
  resolvers: {
    Subscription: {
      moneyIn: { subscribe: () => pubsub.subscribe('moneyIn'), resolve: (event: Event) => event },
      cepStatus: {
        async *subscribe(_root: unknown, { transactionId }: { transactionId: string }) {
          const updates = pubsub.subscribe('cepStatus', transactionId);
          const path = `/v1/clients/${CLIENT_ID}/transactions/${transactionId}`;
          const { body } = await request(`${upstreamUrl}${path}`);
          const { metadata } = (await body.json()) as { metadata: { dataCep: Event } };
          yield { kind: 'SNAPSHOT', transactionId, cep: { ...metadata.dataCep, final: false } };
          yield* updates;
        },
        resolve: (update: Event) => update,
      },
    },
  },
});

const server = createServer(async (incoming, response) => {
  const { data } = JSON.parse(await readText(incoming));
  if (data.cepStatus === undefined) pubsub.publish('moneyIn', data.moneyIn);
  else pubsub.publish('cepStatus', data.cepStatus.transactionId, data.cepStatus);
  response.writeHead(201).end();
});
useServer({ schema }, new WebSocketServer({ server, path: '/graphql' }));
announce(server);
