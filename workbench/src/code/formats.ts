import { constantOf, type Format, indent, json, literal, nameOf, type Snippet } from './snippet.ts';

const inShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const curl: Format = {
  name: 'curl',
  needs: 'A shell, with the access token in TOKEN.',
  write({ query, variables, operationName, kind, graphUrl }) {
    const body = JSON.stringify({
      query,
      variables,
      ...(operationName === undefined ? {} : { operationName }),
    });
    return [
      `curl -s${kind === 'subscription' ? 'N' : ''} ${inShell(graphUrl)}`,
      '-H "authorization: Bearer $TOKEN"',
      "-H 'content-type: application/json'",
      ...(kind === 'subscription' ? ["-H 'accept: text/event-stream'"] : []),
      `-d ${inShell(body)}`,
    ].join(' \\\n  ');
  },
};

const viaFetch: Format = {
  name: 'fetch',
  needs: 'Any browser, or Node 20 and later. A subscription needs npm i graphql-sse.',
  write(snippet) {
    const { query, variables, kind, graphUrl } = snippet;
    const document = `const query = ${literal(query, '  ')};\nconst variables = ${json(variables)};\n`;
    return kind === 'subscription'
      ? `import { createClient } from 'graphql-sse';

${document}
const client = createClient({
  url: '${graphUrl}',
  headers: () => ({ authorization: \`Bearer \${token}\` }),
  // Sent again by itself, the same request would leave out what came meanwhile.
  retryAttempts: 0,
});

for await (const { data, errors } of client.iterate({ query, variables })) {
  console.log(data, errors);
}
`
      : `${document}
const response = await fetch('${graphUrl}', {
  method: 'POST',
  headers: {
    'content-type': 'application/json',
    authorization: \`Bearer \${token}\`,
  },
  body: JSON.stringify({ query, variables }),
});
const { data, errors } = await response.json();
`;
  },
};

const HOOKS: Readonly<Record<string, string>> = {
  query: 'useQuery',
  mutation: 'useMutation',
  subscription: 'useSubscription',
};

const hookOf = ({ kind }: Snippet): string => HOOKS[kind] ?? 'useQuery';

const apollo: Format = {
  name: 'Apollo',
  needs:
    'npm i @apollo/client graphql rxjs, and an ApolloProvider; docs/clients/apollo.md sets up its links.',
  write(snippet) {
    const { query, variables, kind } = snippet;
    const document = constantOf(snippet);
    const use =
      kind === 'mutation'
        ? `const [run, { data, error, loading }] = useMutation(${document});
  // run({ variables: ${json(variables, '  // ')} })`
        : `const { data, error, loading } = ${hookOf(snippet)}(${document}, {
    variables: ${json(variables, '    ')},
  });`;
    return `import { gql } from '@apollo/client';
import { ${hookOf(snippet)} } from '@apollo/client/react';

const ${document} = gql${literal(query, '  ')};

export function ${nameOf(snippet)}() {
  ${use}
  if (loading) return 'Loading';
  if (error) return error.message;
  return JSON.stringify(data);
}
`;
  },
};

const urql: Format = {
  name: 'urql',
  needs: 'npm i urql graphql, and a Provider; docs/clients/urql.md sets up its exchanges.',
  write(snippet) {
    const { query, variables, kind } = snippet;
    const document = constantOf(snippet);
    const use =
      kind === 'mutation'
        ? `const [{ data, error, fetching }, run] = useMutation(${document});
  // run(${json(variables, '  // ')})`
        : `const [{ data, error, fetching }] = ${hookOf(snippet)}({
    query: ${document},
    variables: ${json(variables, '    ')},
  });`;
    return `import { gql, ${hookOf(snippet)} } from 'urql';

const ${document} = gql${literal(query, '  ')};

export function ${nameOf(snippet)}() {
  ${use}
  if (fetching) return 'Loading';
  if (error) return error.message;
  return JSON.stringify(data);
}
`;
  },
};

/** Relay's compiler wants names that begin with the module's and end with the kind of operation. */
const relay: Format = {
  name: 'Relay',
  needs: 'npm i react-relay relay-runtime, npm i -D relay-compiler, and schema.graphql of this project.',
  write(snippet) {
    const { query, variables, kind, operationName } = snippet;
    const suffix = kind === 'mutation' ? 'Mutation' : kind === 'subscription' ? 'Subscription' : 'Query';
    const module = nameOf(snippet).replace(new RegExp(`${suffix}$`), '');
    const name = `${module}${suffix}`;
    const named =
      operationName === undefined
        ? query.replace(/^\s*(query|mutation|subscription)?\s*/, `${kind} ${name} `)
        : query.replace(new RegExp(`\\b${kind}\\s+${operationName}\\b`), `${kind} ${name}`);
    const document = literal(named, '    ').replace(/\n`$/, '\n  `');
    const values = json(variables, '    ');
    if (kind === 'mutation') {
      return `// ${module}.tsx
import { graphql, useMutation } from 'react-relay';
import type { ${name} } from './__generated__/${name}.graphql';

export function use${module}() {
  const [commit, isInFlight] = useMutation<${name}>(graphql${document});
  // commit({ variables: ${json(variables, '  // ')} })
  return { commit, isInFlight };
}
`;
    }
    if (kind === 'subscription') {
      return `// ${module}.tsx
import { useMemo } from 'react';
import { graphql, useSubscription } from 'react-relay';
import type { ${name} } from './__generated__/${name}.graphql';

const subscription = graphql${indent(literal(named, '  '), '')};

export function use${module}(onNext: (response: unknown) => void) {
  const config = useMemo(
    () => ({
      subscription,
      variables: ${json(variables, '      ')},
      onNext,
    }),
    [onNext],
  );
  useSubscription<${name}>(config);
}
`;
    }
    return `// ${module}.tsx
import { graphql, useLazyLoadQuery } from 'react-relay';
import type { ${name} } from './__generated__/${name}.graphql';

export function ${module}() {
  const data = useLazyLoadQuery<${name}>(
    graphql${document},
    ${values},
  );
  return JSON.stringify(data);
}
`;
  },
};

const kotlin: Format = {
  name: 'Kotlin',
  needs:
    'Apollo Kotlin 4, whose plugin generates the class from the document and schema.graphql of this project.',
  write(snippet) {
    const { query, variables, kind, graphUrl } = snippet;
    const suffix = kind === 'mutation' ? 'Mutation' : kind === 'subscription' ? 'Subscription' : 'Query';
    const name = nameOf(snippet);
    const type = name.endsWith(suffix) ? name : `${name}${suffix}`;
    const values = Object.entries(variables)
      .map(([key, value]) => `${key} = ${valueInKotlin(key, value, query)}`)
      .join(', ');
    const call = `apollo.${kind}(${type}(${values}))`;
    const run =
      kind === 'subscription'
        ? `${call}.toFlow().collect { response ->
  println(response.data ?: response.exception ?: response.errors)
}`
        : `val response = ${call}.execute()
println(response.data ?: response.exception ?: response.errors)`;
    // By itself Apollo Kotlin 4 speaks a subprotocol that the gateway does not, and sends no token.
    const subscribing = `
  // That of com.apollographql.apollo.network.websocket.
  .subscriptionNetworkTransport(
    WebSocketNetworkTransport.Builder()
      .serverUrl("${graphUrl.replace(/^http/, 'ws')}")
      .wsProtocol(GraphQLWsProtocol { mapOf("authorization" to "Bearer $token") })
      .build()
  )`;
    return `// src/main/graphql/${name}.graphql
${indent(query, '// ').replace(/^/, '// ')}

val apollo = ApolloClient.Builder()
  .serverUrl("${graphUrl}")
  .addHttpHeader("authorization", "Bearer $token")${kind === 'subscription' ? subscribing : ''}
  .build()

${run}
`;
  },
};

/** Nullable variables are \`Optional\` in what Apollo Kotlin generates; input objects are classes of its own. */
function valueInKotlin(name: string, value: unknown, query: string): string {
  const isNullable = new RegExp(`\\$${name}\\s*:\\s*[\\[\\]\\w!]*[\\]\\w]\\s*[,)=@$]`).test(query);
  if (value === null) return 'Optional.absent()';
  const type = new RegExp(`\\$${name}\\s*:\\s*(\\w+)`).exec(query)?.[1] ?? 'Input';
  const written = literalInKotlin(value, type);
  return isNullable ? `Optional.present(${written})` : written;
}

function literalInKotlin(value: unknown, type: string): string {
  if (Array.isArray(value)) return `listOf(${value.map((item) => literalInKotlin(item, type)).join(', ')})`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).map(([key, field]) => `${key} = ${literalInKotlin(field, 'Input')}`);
    return `${type}(${fields.join(', ')})`;
  }
  return JSON.stringify(value).replaceAll('$', '\\$');
}

export const FORMATS: readonly Format[] = [curl, viaFetch, apollo, urql, relay, kotlin];
