import { useGraphiQL } from '@graphiql/react';
import { buildSchema, type GraphQLSchema } from 'graphql';
import { type ChangeEvent, useState } from 'react';
import { useSession } from '../session.ts';

interface Props {
  readonly onSchema: (schema: GraphQLSchema) => void;
}

/** What a person should know of the gateway, and what to do about it. */
export function Notices({ onSchema }: Props) {
  const { isReachable, notice, gateway } = useSession();
  const hasSchema = useGraphiQL((state) => Boolean(state.schema));
  return (
    <>
      {!isReachable && (
        <p className="wb-notice wb-is-bad" role="alert">
          {navigator.onLine
            ? 'The gateway does not answer. It is looked for every second; streams go on by themselves.'
            : 'This device is offline. The gateway is looked for every second; streams go on by themselves.'}
        </p>
      )}
      {isReachable && notice !== undefined && (
        <p className="wb-notice" role="status">
          {notice}{' '}
          <button
            type="button"
            className="wb-button wb-plain"
            onClick={() => useSession.setState({ notice: undefined })}
          >
            Understood
          </button>
        </p>
      )}
      {gateway?.introspection === false && !hasSchema && <NoIntrospection onSchema={onSchema} />}
    </>
  );
}

function NoIntrospection({ onSchema }: Props) {
  const [complaint, complain] = useState<string>();
  const open = async (event: ChangeEvent<HTMLInputElement>) => {
    const [file] = event.target.files ?? [];
    if (file === undefined) return;
    try {
      onSchema(buildSchema(await file.text()));
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <p className="wb-notice" role="status">
      Introspection is off here: operations run, but there are no docs and no completion. Start the gateway
      with <code>INTROSPECTION=true</code>, or{' '}
      <label className="wb-button wb-plain">
        open schema.graphql
        <input
          type="file"
          className="wb-hidden"
          accept=".graphql,.graphqls,.gql"
          onChange={(event) => void open(event)}
        />
      </label>{' '}
      of this version (<code>npx pasarela schema</code> prints it). {complaint}
    </p>
  );
}
