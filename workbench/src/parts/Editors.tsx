import {
  ExecuteButton,
  HeaderEditor,
  PlayIcon,
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
import { useEffect, useState } from 'react';
import { copyText } from '../clipboard.ts';
import { operationsOf } from '../fetcher.ts';
import { linkTo } from '../link.ts';
import { withOtherKey } from '../story.ts';
import { isGoingOn, useStreams } from '../stream-store.ts';
import { stopStream } from '../streams.ts';
import { t } from '../words.ts';
import { LinkIcon } from './icons.tsx';
import { Splitter } from './Splitter.tsx';
import { useSaid } from './said.ts';
import { moveInTabs, tabProps } from './tablist.ts';

const SAID_MS = 1_500;

/** Has a line that is longer than its editor go on in the next one, as in the result. */
function useWrappedLines(): void {
  const editors = useGraphiQL(({ queryEditor, variableEditor, headerEditor }) => ({
    queryEditor,
    variableEditor,
    headerEditor,
  }));
  useEffect(() => {
    for (const editor of Object.values(editors))
      editor?.updateOptions({ wordWrap: 'on', wrappingIndent: 'indent' });
  }, [editors]);
}

/** The operation, its variables and headers, and what is done with them. */
export function Editors() {
  const hasMonaco = useMonaco((state) => Boolean(state.monaco));
  useWrappedLines();
  const [shown, show] = useState<'variables' | 'headers'>('variables');
  const { firstRef, dragBarRef, secondRef } = useDragResize({
    direction: 'vertical',
    defaultSizeRelation: 2.6,
    sizeThresholdSecond: 60,
    storageKey: 'variablesFlex',
  });
  const choose = (name: typeof shown, label: string) => (
    <button {...tabProps(shown === name)} onClick={() => show(name)}>
      {label}
    </button>
  );
  const keys = t('Enter to write, Escape to leave');
  return (
    <div className="wb-editors">
      <section className="wb-operation" aria-label={t('Operation')} data-keys={keys} ref={firstRef}>
        {hasMonaco ? <QueryEditor /> : <Spinner />}
        <Toolbar />
      </section>
      <div className="wb-drag-vertical" ref={dragBarRef}>
        <div className="wb-choices" role="tablist" aria-label={t('Sent along')} onKeyDown={moveInTabs}>
          {choose('variables', t('Variables'))}
          {choose('headers', t('Headers'))}
        </div>
        <NewKey />
        <Splitter
          first={firstRef}
          second={secondRef}
          orientation="horizontal"
          storageKey="variablesFlex"
          label={t('Height of the operation')}
        />
      </div>
      <section
        className="wb-variables"
        aria-label={shown === 'variables' ? t('Variables') : t('Headers')}
        data-keys={keys}
        ref={secondRef}
      >
        <VariableEditor className={shown === 'variables' ? '' : 'hidden'} />
        <HeaderEditor className={shown === 'headers' ? '' : 'hidden'} />
      </section>
    </div>
  );
}

/** A key that was used brings the payment that it made: another one makes another. */
function NewKey() {
  const { variableEditor, variables } = useGraphiQL((state) => ({
    variableEditor: state.variableEditor,
    variables: state.tabs[state.activeTabIndex]?.variables ?? '',
  }));
  if (withOtherKey(variables) === undefined) return null;
  return (
    <button
      type="button"
      className="wb-button"
      title={t('The same key never pays twice. A new one is a new intent to pay.')}
      onClick={() => variableEditor?.setValue(withOtherKey(variableEditor.getValue()) ?? variables)}
    >
      {t('New key')}
    </button>
  );
}

/** GraphiQL's own button asks which of several operations is meant; its words are English alone. */
function PlayButton({ query }: { readonly query: string }) {
  const { isFetching, isReady } = useGraphiQL((state) => ({
    isFetching: state.isFetching,
    isReady: state.queryEditor !== undefined && state.responseEditor !== undefined,
  }));
  const { run, stop } = useGraphiQLActions();
  if (operationsOf(query).length > 1) return <ExecuteButton />;
  const label = isFetching ? t('Stop query (Ctrl-Enter)') : t('Execute query (Ctrl-Enter)');
  return (
    <button
      type="button"
      className="graphiql-execute-button"
      aria-label={label}
      title={label}
      disabled={!isReady}
      onClick={() => (isFetching ? stop() : void run())}
    >
      {isFetching ? <StopIcon /> : <PlayIcon />}
    </button>
  );
}

function Toolbar() {
  const { tab, query, queryEditor, variableEditor } = useGraphiQL((state) => ({
    tab: state.tabs[state.activeTabIndex]?.id ?? '',
    query: state.tabs[state.activeTabIndex]?.query ?? '',
    queryEditor: state.queryEditor,
    variableEditor: state.variableEditor,
  }));
  const { prettifyEditors } = useGraphiQLActions();
  const stream = useStreams((streams) => streams[tab]);
  const [said, say] = useSaid(SAID_MS);
  const copyLink = async () => {
    const link = linkTo({
      query: queryEditor?.getValue() ?? '',
      variables: variableEditor?.getValue() ?? '',
    });
    if (await copyText(link)) say(t('Link copied'));
    else {
      history.replaceState(null, '', link);
      say(t('The link is in the address bar'));
    }
  };
  return (
    <div className="wb-toolbar" role="toolbar" aria-label={t('Editor')}>
      {isGoingOn(stream) ? (
        <button
          type="button"
          className="graphiql-execute-button"
          aria-label={t('Stop the stream')}
          title={t('Stop the stream')}
          onClick={() => stopStream(tab)}
        >
          <StopIcon />
        </button>
      ) : (
        <PlayButton query={query} />
      )}
      <button
        type="button"
        className="wb-icon"
        aria-label={t('Prettify')}
        title={t('Prettify')}
        onClick={() => void prettifyEditors()}
      >
        <PrettifyIcon />
      </button>
      <button
        type="button"
        className="wb-icon"
        aria-label={t('Copy a link to this operation')}
        title={t('Copy a link to this operation, with its variables')}
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
