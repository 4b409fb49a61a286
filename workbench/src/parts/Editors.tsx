import {
  ExecuteButton,
  HeaderEditor,
  PrettifyIcon,
  QueryEditor,
  Spinner,
  StopIcon,
  useDragResize,
  useGraphiQL,
  useGraphiQLActions,
  useMonaco,
  VariableEditor,
} from '@graphiql/react';
import { useState } from 'react';
import { linkTo } from '../link.ts';
import { isLive, stopStream, useStreams } from '../streams.ts';
import { LinkIcon } from './icons.tsx';

const SAID_MS = 1_500;

/** The operation, its variables and headers, and what is done with them. */
export function Editors() {
  const hasMonaco = useMonaco((state) => Boolean(state.monaco));
  const [shown, show] = useState<'variables' | 'headers'>('variables');
  const { firstRef, dragBarRef, secondRef } = useDragResize({
    direction: 'vertical',
    defaultSizeRelation: 2.6,
    sizeThresholdSecond: 60,
    storageKey: 'variablesFlex',
  });
  const choose = (name: typeof shown, label: string) => (
    <button type="button" role="tab" aria-selected={shown === name} onClick={() => show(name)}>
      {label}
    </button>
  );
  return (
    <div className="wb-editors">
      <section className="wb-operation" aria-label="Operation" ref={firstRef}>
        {hasMonaco ? <QueryEditor /> : <Spinner />}
        <Toolbar />
      </section>
      <div className="wb-choices wb-drag-vertical" ref={dragBarRef} role="tablist" aria-label="Sent along">
        {choose('variables', 'Variables')}
        {choose('headers', 'Headers')}
      </div>
      <section className="wb-variables" aria-label={shown} ref={secondRef}>
        <VariableEditor className={shown === 'variables' ? '' : 'hidden'} />
        <HeaderEditor className={shown === 'headers' ? '' : 'hidden'} />
      </section>
    </div>
  );
}

function Toolbar() {
  const { tab, queryEditor, variableEditor } = useGraphiQL((state) => ({
    tab: state.tabs[state.activeTabIndex]?.id ?? '',
    queryEditor: state.queryEditor,
    variableEditor: state.variableEditor,
  }));
  const { prettifyEditors } = useGraphiQLActions();
  const stream = useStreams((streams) => streams[tab]);
  const [said, say] = useState<string>();
  const copyLink = async () => {
    const link = linkTo({
      query: queryEditor?.getValue() ?? '',
      variables: variableEditor?.getValue() ?? '',
    });
    history.replaceState(null, '', link);
    await navigator.clipboard.writeText(link).then(
      () => say('Link copied'),
      () => say('The link is in the address bar'),
    );
    setTimeout(() => say(undefined), SAID_MS);
  };
  return (
    <div className="wb-toolbar" role="toolbar" aria-label="Editor">
      {isLive(stream) ? (
        <button
          type="button"
          className="graphiql-execute-button"
          aria-label="Stop the stream"
          title="Stop the stream"
          onClick={() => stopStream(tab)}
        >
          <StopIcon />
        </button>
      ) : (
        <ExecuteButton />
      )}
      <button
        type="button"
        className="wb-icon"
        aria-label="Prettify"
        title="Prettify"
        onClick={() => void prettifyEditors()}
      >
        <PrettifyIcon />
      </button>
      <button
        type="button"
        className="wb-icon"
        aria-label="Copy a link to this operation"
        title="Copy a link to this operation, with its variables"
        onClick={() => void copyLink()}
      >
        <LinkIcon />
      </button>
      <span className="wb-toast" aria-live="polite">
        {said}
      </span>
    </div>
  );
}
