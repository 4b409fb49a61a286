import { CloseIcon, PlusIcon, useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { dropStream, isLive, useStreams } from '../streams.ts';

/** One tab for each operation. A tab whose stream is live says so, whichever is open. */
export function Tabs() {
  const { tabs, activeTabIndex } = useGraphiQL(({ tabs, activeTabIndex }) => ({ tabs, activeTabIndex }));
  const { addTab, changeTab, closeTab } = useGraphiQLActions();
  const streams = useStreams();
  const close = (index: number, id: string) => {
    dropStream(id);
    closeTab(index);
  };
  return (
    <div className="wb-tabs" role="tablist" aria-label="Operations">
      {tabs.map(({ id, title }, index) => {
        const stream = streams[id];
        return (
          <div key={id} className="wb-tab" data-active={index === activeTabIndex}>
            <button
              type="button"
              role="tab"
              aria-selected={index === activeTabIndex}
              onClick={() => index !== activeTabIndex && changeTab(index)}
            >
              {isLive(stream) && <span className={`wb-dot wb-${stream?.status}`} aria-hidden="true" />}
              {title}
              {isLive(stream) && (
                <span className="wb-count" title="This stream is live: so many events">
                  {stream?.count}
                </span>
              )}
            </button>
            {tabs.length > 1 && (
              <button
                type="button"
                className="wb-close"
                aria-label={`Close ${title}`}
                onClick={() => close(index, id)}
              >
                <CloseIcon />
              </button>
            )}
          </div>
        );
      })}
      <button type="button" className="wb-add" aria-label="New tab" onClick={addTab}>
        <PlusIcon />
      </button>
    </div>
  );
}
