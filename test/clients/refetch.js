// Relay's runtime against a gateway: every noun is refetched by its id, and a connection is paged to its end.
// Arguments: the graph's address, a token, and the ids of the nouns as JSON. Prints what was read as JSON.
import { argv, stdout } from 'node:process';
import relay from 'relay-runtime';

const { createOperationDescriptor, Environment, getFragment, getRequest, getSelector, graphql } = relay;
const { Network, RecordSource, Store } = relay;
const [, , address, token, ids] = argv;

/** Routes of the REST calls beneath each request. */
const routes = [];
const environment = new Environment({
  store: new Store(new RecordSource()),
  network: Network.create(async ({ text }, variables) => {
    const response = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ query: text, variables }),
    });
    const result = await response.json();
    routes.push((result.extensions?.upstream ?? []).map(({ route }) => route));
    return result;
  }),
});

const start = graphql`
  query refetchStartQuery($customer: ID!, $account: ID!, $instrument: ID!, $transaction: ID!) {
    client { ...refetch_client }
    customer(id: $customer) { ...refetch_customer }
    account(by: { id: $account }) { ...refetch_account }
    instrument(id: $instrument) { ...refetch_instrument }
    transaction(id: $transaction) { ...refetch_transaction }
  }
`;
const fragments = {
  client: graphql`
    fragment refetch_client on Client
    @refetchable(queryName: "refetchClientQuery")
    @argumentDefinitions(count: { type: "Int", defaultValue: 7 }, cursor: { type: "Cursor" }) {
      id
      instruments(first: $count, after: $cursor) @connection(key: "refetch_instruments") {
        edges { node { id } }
      }
    }
  `,
  customer: graphql`
    fragment refetch_customer on Customer @refetchable(queryName: "refetchCustomerQuery") { id name }
  `,
  account: graphql`
    fragment refetch_account on Account @refetchable(queryName: "refetchAccountQuery") { id clabe }
  `,
  instrument: graphql`
    fragment refetch_instrument on Instrument @refetchable(queryName: "refetchInstrumentQuery") { id alias }
  `,
  transaction: graphql`
    fragment refetch_transaction on Transaction @refetchable(queryName: "refetchTransactionQuery") { id status }
  `,
};

async function execute(request, variables) {
  const operation = createOperationDescriptor(getRequest(request), variables);
  environment.retain(operation);
  await environment.execute({ operation }).toPromise();
  return environment.lookup(operation.fragment).data;
}

const first = await execute(start, JSON.parse(ids));
const refetched = {};
for (const [name, tag] of Object.entries(fragments)) {
  const fragment = getFragment(tag);
  const read = () => environment.lookup(getSelector(fragment, first[name])).data;
  const { id } = read();
  routes.length = 0;
  await execute(fragment.metadata.refetch.operation, { id });
  refetched[name] = { data: read(), routes: routes.at(-1) };
}

const clientFragment = getFragment(fragments.client);
const client = () => environment.lookup(getSelector(clientFragment, first.client)).data;
for (let page = client().instruments.pageInfo; page.hasNextPage; page = client().instruments.pageInfo) {
  const variables = { id: client().id, count: 7, cursor: page.endCursor };
  await execute(clientFragment.metadata.refetch.operation, variables);
}
const instruments = client().instruments.edges.map(({ node }) => node.id);
stdout.write(JSON.stringify({ refetched, instruments }));
