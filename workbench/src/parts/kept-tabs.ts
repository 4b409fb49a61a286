import { useGraphiQL } from '@graphiql/react';
import { useEffect } from 'react';
import { writeTabs } from '../storage.ts';

/** Writes the tabs down as the page is left, or hidden, as GraphiQL itself does half a second after a change. */
export function useKeptTabs(): void {
  const state = useGraphiQL(({ tabs, activeTabIndex, queryEditor, variableEditor }) => ({
    tabs,
    activeTabIndex,
    queryEditor,
    variableEditor,
  }));
  useEffect(() => {
    const { tabs, activeTabIndex, queryEditor, variableEditor } = state;
    const write = () => {
      if (queryEditor === undefined || variableEditor === undefined) return;
      // What was typed last has not reached the tab yet.
      const typed = { query: queryEditor.getValue(), variables: variableEditor.getValue() };
      const now = tabs.map((tab, index) => (index === activeTabIndex ? { ...tab, ...typed } : tab));
      writeTabs({ tabs: now, activeTabIndex });
    };
    // A phone may end a hidden page without a word.
    const hide = () => document.hidden && write();
    window.addEventListener('pagehide', write);
    document.addEventListener('visibilitychange', hide);
    return () => {
      window.removeEventListener('pagehide', write);
      document.removeEventListener('visibilitychange', hide);
    };
  }, [state]);
}
