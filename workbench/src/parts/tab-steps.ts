import { useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { useEffect } from 'react';
import { forgetLink, linkedHere } from '../link.ts';
import { useSession } from '../session.ts';
import { useShown } from '../session-file.ts';
import { rememberFilledIn } from '../storage.ts';
import { STORY, WATCH_RECEIPT } from '../story.ts';
import { useValidation, withLatest } from '../validations.ts';

/** Opens a tab. What is played in the open one ends, as with a change of tabs: GraphiQL would show its answer in the new one. */
export function useNewTab(): () => void {
  const { addTab, stop } = useGraphiQLActions();
  return () => {
    stop();
    addTab();
  };
}

const useEditors = () => useGraphiQL(({ queryEditor, variableEditor }) => ({ queryEditor, variableEditor }));

/** What a link brings has a tab of its own. */
export function useLinkedTab(): void {
  const { queryEditor, variableEditor } = useEditors();
  const { addTab } = useGraphiQLActions();
  useEffect(() => {
    const linked = linkedHere();
    if (linked === undefined || queryEditor === undefined || variableEditor === undefined) return;
    forgetLink();
    addTab();
    queryEditor.setValue(linked.query);
    variableEditor.setValue(linked.variables);
  }, [queryEditor, variableEditor, addTab]);
}

/** Plays at Ctrl-Enter, wherever the focus is; the editors do so by themselves. */
export function usePlayKey(): void {
  const { run } = useGraphiQLActions();
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
      const { target } = event;
      if (target instanceof Element && target.closest('.wb-editors .graphiql-editor') !== null) return;
      if (document.querySelector('dialog[open]') !== null || useShown.getState().session !== undefined)
        return;
      event.preventDefault();
      void run();
    };
    // The result's own editor would keep it.
    window.addEventListener('keydown', press, { capture: true });
    return () => window.removeEventListener('keydown', press, { capture: true });
  }, [run]);
}

/** Goes through the story: each step has a tab, which is made again where it was closed. */
export function useSteps() {
  const { tabs, activeTabIndex } = useGraphiQL(({ tabs, activeTabIndex }) => ({ tabs, activeTabIndex }));
  const { queryEditor, variableEditor } = useEditors();
  const { changeTab, run } = useGraphiQLActions();
  const newTab = useNewTab();
  const sandbox = useSession((session) => session.sandbox);
  const validation = useValidation(({ id }) => id);
  const title = tabs[activeTabIndex]?.title;

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
      newTab();
      queryEditor?.setValue(step.query);
      variableEditor?.setValue(JSON.stringify(step.variables(sandbox), null, 2));
    }
  };
  const watch = (transactionId: string): void => {
    open(WATCH_RECEIPT);
    rememberFilledIn(transactionId);
    variableEditor?.setValue(JSON.stringify({ transactionId }, null, 2));
    void run();
  };
  return { open, watch };
}
