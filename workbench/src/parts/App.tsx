import { DOC_EXPLORER_PLUGIN, DocExplorerStore } from '@graphiql/plugin-doc-explorer';
import { explorerPlugin } from '@graphiql/plugin-explorer';
import { HISTORY_PLUGIN, HistoryStore } from '@graphiql/plugin-history';
import { GraphiQLProvider, Tooltip } from '@graphiql/react';
import type { GraphQLSchema } from 'graphql';
import { useState } from 'react';
import { fetcher, setActiveTab } from '../fetcher.ts';
import { useSession } from '../session.ts';
import { storage } from '../storage.ts';
import { firstTabs } from '../story.ts';
import { EDITOR_THEME, useEditorTheme } from '../theme.ts';
import { CODE_PLUGIN } from './CodePlugin.tsx';
import { Workbench } from './Workbench.tsx';

const PLUGINS = [
  DOC_EXPLORER_PLUGIN,
  { ...explorerPlugin(), title: 'Explorer' },
  HISTORY_PLUGIN,
  CODE_PLUGIN,
];

/** GraphiQL then asks for none. */
const NO_SCHEMA = { schema: null };

/** GraphiQL's state, around the page. */
export function App() {
  const { gateway, sandbox } = useSession();
  const [opened, open] = useState<GraphQLSchema>();
  const [tabs] = useState(() => firstTabs(sandbox));
  return (
    <GraphiQLProvider
      fetcher={fetcher}
      plugins={PLUGINS}
      referencePlugin={DOC_EXPLORER_PLUGIN}
      storage={storage}
      defaultTabs={tabs}
      shouldPersistHeaders={false}
      schemaDescription
      inputValueDeprecation
      editorTheme={EDITOR_THEME}
      onTabChange={({ tabs, activeTabIndex }) => setActiveTab(tabs[activeTabIndex]?.id ?? '')}
      {...(opened === undefined ? (gateway?.introspection === false ? NO_SCHEMA : {}) : { schema: opened })}
    >
      <HistoryStore>
        <DocExplorerStore>
          <Tooltip.Provider>
            <Themed />
            <Workbench onSchema={open} />
          </Tooltip.Provider>
        </DocExplorerStore>
      </HistoryStore>
    </GraphiQLProvider>
  );
}

function Themed() {
  useEditorTheme();
  return null;
}
