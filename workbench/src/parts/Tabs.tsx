import { CloseIcon, PlusIcon, useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { type KeyboardEvent, useEffect, useRef } from 'react';
import { isGoingOn, useStreams } from '../stream-store.ts';
import { dropStream } from '../streams.ts';
import { t } from '../words.ts';
import { statusOf } from './StreamHeader.tsx';
import { tabName } from './tab-names.ts';
import { useNewTab } from './tab-steps.ts';
import { moveInTabs, tabProps } from './tablist.ts';

/** One tab for each operation. A tab whose stream goes on says how it stands, whichever is open. */
export function Tabs() {
  const { tabs, activeTabIndex } = useGraphiQL(({ tabs, activeTabIndex }) => ({ tabs, activeTabIndex }));
  const { changeTab, closeTab } = useGraphiQLActions();
  const streams = useStreams();
  const list = useRef<HTMLDivElement>(null);
  const active = tabs[activeTabIndex]?.id ?? '';
  useActiveInView(list, active, streams[active]?.count ?? 0);
  const close = (index: number) => {
    const tab = tabs[index];
    if (tab === undefined || tabs.length === 1) return;
    dropStream(tab.id);
    closeTab(index);
  };
  const press = (event: KeyboardEvent<HTMLElement>) => {
    if (event.key === 'Delete') close(activeTabIndex);
    else moveInTabs(event);
  };
  return (
    <div className="wb-tabs">
      <div ref={list} className="wb-tablist" role="tablist" aria-label={t('Operations')} onKeyDown={press}>
        {tabs.map(({ id, title }, index) => {
          const stream = streams[id];
          return (
            <div key={id} className="wb-tab" role="presentation" data-active={index === activeTabIndex}>
              <button
                {...tabProps(index === activeTabIndex)}
                aria-controls="wb-operation"
                aria-keyshortcuts="Delete"
                onClick={() => index !== activeTabIndex && changeTab(index)}
              >
                {stream !== undefined && isGoingOn(stream) && (
                  <span className={`wb-dot wb-${stream.status}`} aria-hidden="true" />
                )}
                {tabName(title)}
                {stream !== undefined && isGoingOn(stream) && (
                  <span
                    className="wb-count"
                    title={t('{status}. Events so far', { status: statusOf(stream.status) })}
                  >
                    {stream.count}
                  </span>
                )}
              </button>
              {tabs.length > 1 && (
                // For the mouse. Keys have Delete, and screen readers the button beside the list.
                <span className="wb-close" aria-hidden="true" onClick={() => close(index)}>
                  <CloseIcon />
                </span>
              )}
            </div>
          );
        })}
      </div>
      <NewTab />
      {tabs.length > 1 && (
        <button type="button" className="wb-button wb-unless-focused" onClick={() => close(activeTabIndex)}>
          {t('Close {title}', { title: tabName(tabs[activeTabIndex]?.title ?? '') })}
        </button>
      )}
    </div>
  );
}

function NewTab() {
  const newTab = useNewTab();
  return (
    <button type="button" className="wb-add" aria-label={t('New tab')} title={t('New tab')} onClick={newTab}>
      <PlusIcon />
    </button>
  );
}

/** Keeps the open tab whole in a list that is longer than its place, also as its count grows. The page itself is not moved. */
function useActiveInView(list: React.RefObject<HTMLElement | null>, active: string, count: number): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tab moves and grows by these.
  useEffect(() => {
    const place = list.current?.getBoundingClientRect();
    const tab = list.current?.querySelector('[data-active="true"]')?.getBoundingClientRect();
    if (place === undefined || tab === undefined) return;
    if (tab.right > place.right) list.current?.scrollBy({ left: tab.right - place.right });
    else if (tab.left < place.left) list.current?.scrollBy({ left: tab.left - place.left });
  }, [active, count]);
}
