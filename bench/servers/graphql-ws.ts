/** Fan-out on stock graphql-ws, as its documentation sets it up, over Yoga's in-process pub/sub. */
import { EventEmitter } from 'node:events';
import { createServer } from 'node:http';
import { useServer } from 'graphql-ws/use/ws';
import { createPubSub, createSchema } from 'graphql-yoga';
import { WebSocketServer } from 'ws';
import { announce } from '../lib/announce.ts';
import { readText } from './read-text.ts';

type Event = Readonly<Record<string, unknown>>;

// Ten thousand listeners are no leak here.
EventEmitter.defaultMaxListeners = 0;

const pubsub = createPubSub<{ moneyIn: [Event] }>();
const schema = createSchema({
  typeDefs: /* GraphQL */ `
    type Query {
      ready: Boolean!
    }
    type Subscription {
      moneyIn: MoneyInEvent!
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
    },
  },
});

const server = createServer(async (request, response) => {
  const { data } = JSON.parse(await readText(request));
  pubsub.publish('moneyIn', data.moneyIn);
  response.writeHead(201).end();
});
useServer({ schema }, new WebSocketServer({ server, path: '/graphql' }));
announce(server);
