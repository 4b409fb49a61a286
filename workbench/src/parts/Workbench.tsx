import { useDragResize, useGraphiQL } from '@graphiql/react';
import type { GraphQLSchema } from 'graphql';
import { useEffect, useRef, useState } from 'react';
import { setActiveTab } from '../fetcher.ts';
import { credit, type Deed } from '../sandbox.ts';
import { useSession } from '../session.ts';
import { forgetTabs } from '../storage.ts';
import { dropStreams } from '../streams.ts';
import { t } from '../words.ts';
import { useAccessiblePane } from './accessible-pane.ts';
import { Editors } from './Editors.tsx';
import { Header } from './Header.tsx';
import { useKeptTabs } from './kept-tabs.ts';
import { useKeptFocus, useWayOutOfEditors } from './keyboard.ts';
import { Notices } from './Notices.tsx';
import { PaymentDialog } from './PaymentDialog.tsx';
import { paneName } from './pane-names.ts';
import { Rail } from './Rail.tsx';
import { Results } from './Results.tsx';
import { type Said, SandboxBar } from './SandboxBar.tsx';
import { Splitter } from './Splitter.tsx';
import { Story } from './Story.tsx';
import { Tabs } from './Tabs.tsx';
import { tabName } from './tab-names.ts';
import { useLinkedTab, usePlayKey, useSteps } from './tab-steps.ts';

interface Props {
  readonly onSchema: (schema: GraphQLSchema) => void;
}

/** The page. */
export function Workbench({ onSchema }: Props) {
  const tab = useGraphiQL(({ tabs, activeTabIndex }) => tabs[activeTabIndex]);
  const sandbox = useSession((session) => session.sandbox);
  const { said, act } = useDeeds();
  const [payment, setPayment] = useState<{ readonly id: string; readonly opening: number }>();
  const showPayment = (id: string) => setPayment((last) => ({ id, opening: (last?.opening ?? 0) + 1 }));
  const { firstRef, dragBarRef, secondRef } = useDragResize({
    direction: 'horizontal',
    storageKey: 'editorFlex',
  });
  const title = tab?.title ?? '';
  useEffect(() => setActiveTab(tab?.id ?? ''), [tab?.id]);
  useKeptTabs();
  useLinkedTab();
  usePlayKey();
  useWayOutOfEditors();
  const page = useRef<HTMLDivElement>(null);
  useKeptFocus(page);
  const { open, watch } = useSteps();
  const [account] = sandbox?.accounts ?? [];
  const onCredit = account && (() => act(credit(account.clabe, account.alias, '1250.00')));

  return (
    <div className="graphiql-container wb-page" ref={page}>
      <Header />
      <Notices onSchema={onSchema} />
      <div className="wb-main">
        <Rail />
        <Pane />
        <main className="wb-session">
          <Tabs />
          {sandbox !== undefined && <Story title={title} onOpen={open} onRestart={restart} />}
          <div className="wb-columns" id="wb-operation" role="tabpanel" aria-label={tabName(title)}>
            <div className="wb-left" ref={firstRef}>
              <Editors />
            </div>
            <div className="wb-drag" ref={dragBarRef}>
              <Splitter
                first={firstRef}
                second={secondRef}
                orientation="vertical"
                storageKey="editorFlex"
                label={t('Width of the operation')}
              />
            </div>
            <div className="wb-right" ref={secondRef}>
              <Results
                onWatch={watch}
                onCredit={onCredit}
                onOpen={open}
                onPayment={sandbox === undefined ? undefined : showPayment}
              />
            </div>
          </div>
        </main>
      </div>
      {sandbox !== undefined && <SandboxBar description={sandbox} act={act} said={said} />}
      {payment !== undefined && (
        <PaymentDialog
          key={payment.opening}
          transactionId={payment.id}
          // A dialog tells that it is closed a moment later. It may have been opened again by then.
          onClose={() => setPayment((now) => (now === payment ? undefined : now))}
        />
      )}
    </div>
  );
}

function restart(): void {
  forgetTabs();
  dropStreams();
  location.reload();
}

/** The pane of the plugin that is open. */
function Pane() {
  const { visiblePlugin } = useGraphiQL(({ visiblePlugin }) => ({ visiblePlugin }));
  const pane = useRef<HTMLElement>(null);
  useAccessiblePane(pane);
  if (!visiblePlugin) return null;
  const { content: Content, title } = visiblePlugin;
  return (
    <aside className="wb-pane graphiql-plugin" ref={pane} aria-label={paneName(title)}>
      <Content />
    </aside>
  );
}

/** How long a deed is told of. */
const SAID_MS = 10_000;

/** Does what a button says, and tells what came of it: for a while, or until the next deed where it went wrong. */
function useDeeds() {
  const [said, say] = useState<Said>();
  useEffect(() => {
    if (said === undefined || said.isBad) return;
    const timer = setTimeout(() => say(undefined), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const act = (deed: Deed): void => {
    deed().then(
      (text) => say({ text, isBad: false }),
      (error: unknown) => say({ text: error instanceof Error ? error.message : String(error), isBad: true }),
    );
  };
  return { said, act };
}
