import { useDragResize, useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import type { GraphQLSchema } from 'graphql';
import { useEffect, useState } from 'react';
import { setActiveTab } from '../fetcher.ts';
import { linkedHere } from '../link.ts';
import { credit, type Deed } from '../sandbox.ts';
import { useSession } from '../session.ts';
import { forgetTabs } from '../storage.ts';
import { STORY, WATCH_RECEIPT } from '../story.ts';
import { useValidation, withLatest } from '../validations.ts';
import { Editors } from './Editors.tsx';
import { Header } from './Header.tsx';
import { Notices } from './Notices.tsx';
import { Rail } from './Rail.tsx';
import { Results } from './Results.tsx';
import { type Said, SandboxBar } from './SandboxBar.tsx';
import { Story } from './Story.tsx';
import { Tabs } from './Tabs.tsx';

interface Props {
  readonly onSchema: (schema: GraphQLSchema) => void;
}

/** The page. */
export function Workbench({ onSchema }: Props) {
  const { tabs, activeTabIndex, visiblePlugin, queryEditor, variableEditor } = useGraphiQL((state) => ({
    tabs: state.tabs,
    activeTabIndex: state.activeTabIndex,
    visiblePlugin: state.visiblePlugin,
    queryEditor: state.queryEditor,
    variableEditor: state.variableEditor,
  }));
  const { addTab, changeTab, run } = useGraphiQLActions();
  const sandbox = useSession((session) => session.sandbox);
  const [said, say] = useState<Said>();
  const { firstRef, dragBarRef, secondRef } = useDragResize({
    direction: 'horizontal',
    storageKey: 'editorFlex',
  });
  const tab = tabs[activeTabIndex];
  const title = tab?.title ?? '';
  const validation = useValidation(({ id }) => id);
  const Pane = visiblePlugin?.content;

  useEffect(() => setActiveTab(tab?.id ?? ''), [tab?.id]);

  // What a link brings has a tab of its own.
  useEffect(() => {
    const linked = linkedHere();
    if (linked === undefined || queryEditor === undefined || variableEditor === undefined) return;
    history.replaceState(null, '', location.pathname);
    addTab();
    queryEditor.setValue(linked.query);
    variableEditor.setValue(linked.variables);
  }, [queryEditor, variableEditor, addTab]);

  useEffect(() => {
    if (title !== WATCH_RECEIPT || variableEditor === undefined) return;
    const filled = withLatest(variableEditor.getValue(), validation);
    if (filled !== undefined) variableEditor.setValue(filled);
  }, [title, validation, variableEditor]);

  const open = (operationName: string): void => {
    const index = tabs.findIndex((one) => one.title === operationName);
    const step = STORY.find((one) => one.operationName === operationName);
    if (index !== -1) {
      if (index !== activeTabIndex) changeTab(index);
    } else if (step !== undefined && sandbox !== undefined) {
      addTab();
      queryEditor?.setValue(step.query);
      variableEditor?.setValue(JSON.stringify(step.variables(sandbox), null, 2));
    }
  };
  const watch = (transactionId: string): void => {
    open(WATCH_RECEIPT);
    variableEditor?.setValue(JSON.stringify({ transactionId }, null, 2));
    void run();
  };
  const act = (deed: Deed): void => {
    deed().then(
      (text) => say({ text, isBad: false }),
      (error: unknown) => say({ text: error instanceof Error ? error.message : String(error), isBad: true }),
    );
  };
  const restart = (): void => {
    forgetTabs();
    location.reload();
  };
  const [account] = sandbox?.accounts ?? [];
  const onCredit = account && (() => act(credit(account.clabe, account.alias, '1250.00')));

  return (
    <div className="graphiql-container wb-page">
      <Header />
      <Notices onSchema={onSchema} />
      <div className="wb-main">
        <Rail />
        {Pane !== undefined && (
          <aside className="wb-pane graphiql-plugin">
            <Pane />
          </aside>
        )}
        <main className="wb-session">
          <Tabs />
          {sandbox !== undefined && <Story title={title} onOpen={open} onRestart={restart} />}
          <div className="wb-columns">
            <div className="wb-left" ref={firstRef}>
              <Editors />
            </div>
            <div className="wb-drag" ref={dragBarRef} />
            <div className="wb-right" ref={secondRef}>
              <Results onWatch={watch} onCredit={onCredit} />
            </div>
          </div>
        </main>
      </div>
      {sandbox !== undefined && <SandboxBar description={sandbox} act={act} said={said} />}
    </div>
  );
}
