/** Yoga without our work: the product's own Yoga and graphql, the shared resolvers and DataLoader. */
import { createServer } from 'node:http';
import { createSchema, createYoga } from 'graphql-yoga';
import { announce } from '../lib/announce.ts';
import { type Context, createContext, resolvers, typeDefs } from './graph.ts';
import { openUpstream } from './rest.ts';

const [origin = ''] = process.argv.slice(2);
const restOf = openUpstream(origin);

const yoga = createYoga<object, Context>({
  schema: createSchema<Context>({ typeDefs, resolvers }),
  context: ({ request }) => createContext(restOf(request.headers.get('authorization') ?? undefined)),
  logging: false,
  graphiql: false,
  landingPage: false,
});
const server = createServer(yoga);
server.keepAliveTimeout = 600_000;
announce(server);
