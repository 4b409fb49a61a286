import { useGraphiQL } from '@graphiql/react';
import { buildSchema, type GraphQLSchema } from 'graphql';
import { type ChangeEvent, useEffect, useState } from 'react';
import { isOffline } from '../addresses.ts';
import { sharesConnection } from '../net/stream.ts';
import { useSession } from '../session.ts';
import { useStreams } from '../stream-store.ts';
import { t } from '../words.ts';

const NOTICE_MS = 15_000;

interface Props {
  readonly onSchema: (schema: GraphQLSchema) => void;
}

/** What a person should know of the gateway, and what to do about it. */
export function Notices({ onSchema }: Props) {
  const { isReachable, notice, gateway } = useSession();
  // It is over once it has been read.
  useEffect(() => {
    if (notice === undefined || !isReachable) return;
    const timer = setTimeout(() => useSession.setState({ notice: undefined }), NOTICE_MS);
    return () => clearTimeout(timer);
  }, [notice, isReachable]);
  const holdsConnections = useStreams((streams) =>
    Object.values(streams).some(({ status, transport }) => status === 'live' && transport === 'SSE'),
  );
  const hasSchema = useGraphiQL((state) => Boolean(state.schema));
  return (
    <>
      {!isReachable && (
        <p className="wb-notice wb-is-bad" role="alert">
          {whyUnreachable(holdsConnections)}
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
            {t('Dismiss')}
          </button>
        </p>
      )}
      {gateway?.introspection === false && !hasSchema && <NoIntrospection onSchema={onSchema} />}
    </>
  );
}

/** @param holdsConnections whether streams over SSE are live here: those of all windows together may leave no connection. */
function whyUnreachable(holdsConnections: boolean): string {
  if (isOffline())
    return t(
      'This device is offline. The page looks for the gateway every second; streams resume by themselves.',
    );
  const silent = t(
    'The gateway does not answer. The page tries again every second; streams resume by themselves.',
  );
  if (!holdsConnections || sharesConnection()) return silent;
  return `${silent} ${t('If many streams over SSE are open in your windows, they may hold every connection that the browser allows to this address: then stop one, or carry it over WebSocket.')}`;
}

function NoIntrospection({ onSchema }: Props) {
  const [complaint, complain] = useState<string>();
  const open = async (event: ChangeEvent<HTMLInputElement>) => {
    const { target } = event;
    const [file] = target.files ?? [];
    if (file === undefined) return;
    // The browser tells of no choice that is the same as before: a file that was mended is chosen again.
    target.value = '';
    try {
      onSchema(buildSchema(await file.text()));
    } catch (error) {
      complain(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <p className="wb-notice" role="status">
      {t(
        'Introspection is off here: operations run, but there are no docs and no completion. Start the gateway with',
      )}{' '}
      <code>INTROSPECTION=true</code>
      {t(', or')}{' '}
      <label className="wb-button wb-plain">
        {t('open schema.graphql')}
        <input
          type="file"
          className="wb-hidden"
          accept=".graphql,.graphqls,.gql"
          onChange={(event) => void open(event)}
        />
      </label>{' '}
      {t('of this version, which')} <code>npx pasarela schema</code>
      {t(' prints.')} {complaint}
    </p>
  );
}
