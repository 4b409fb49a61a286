/** Mercurius with its JIT, the shared resolvers and DataLoader. */
import { fastify } from 'fastify';
import mercurius from 'mercurius';
import { announceUrl } from '../lib/announce.ts';
import { createContext, resolvers, typeDefs } from './graph.ts';
import { openUpstream } from './rest.ts';

const [origin = ''] = process.argv.slice(2);
const restOf = openUpstream(origin);

const app = fastify({ logger: false, keepAliveTimeout: 600_000 });
await app.register(mercurius, {
  schema: typeDefs,
  // Mercurius types the context as its own, and the shared resolvers name the one that `context` makes below.
  resolvers: resolvers as unknown as mercurius.IResolvers,
  context: (request) => createContext(restOf(request.headers.authorization)),
  jit: 1,
});
announceUrl(await app.listen({ host: '127.0.0.1', port: 0 }));
