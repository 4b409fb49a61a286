// Apollo Client's own persisted-query link against a gateway. Arguments: the graph's address and a token. Prints what was read,
// and how many requests it took.
import { createHash } from 'node:crypto';
import { argv, stdout } from 'node:process';
import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';

const [, , uri, token] = argv;
const bodies = [];
const http = new HttpLink({
  uri,
  headers: { authorization: `Bearer ${token}` },
  fetch: (input, init) => {
    bodies.push(JSON.parse(init.body));
    return fetch(input, init);
  },
});
const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const link = ApolloLink.from([new PersistedQueryLink({ sha256 }), http]);
const client = new ApolloClient({ link, cache: new InMemoryCache() });
const read = async () => {
  const { data } = await client.query({ query: gql('{ client { id } }'), fetchPolicy: 'network-only' });
  return data.client.id;
};
const ids = [await read(), await read()];
stdout.write(JSON.stringify({ ids, texts: bodies.map(({ query }) => query !== undefined) }));
