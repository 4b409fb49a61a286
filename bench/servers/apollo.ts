/** Apollo Server, stand-alone, with the shared resolvers and DataLoader. */
import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';
import { announceUrl } from '../lib/announce.ts';
import { type Context, createContext, resolvers, typeDefs } from './graph.ts';
import { openUpstream } from './rest.ts';

const [origin = ''] = process.argv.slice(2);
const restOf = openUpstream(origin);

const server = new ApolloServer<Context>({ typeDefs, resolvers });
const { url } = await startStandaloneServer(server, {
  listen: { host: '127.0.0.1', port: 0 },
  context: async ({ req }) => createContext(restOf(req.headers.authorization)),
});
announceUrl(url);
