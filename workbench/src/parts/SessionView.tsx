import { useState } from 'react';
import { forgetLink } from '../link.ts';
import { type KeptSession, type KeptTab, showSession } from '../session-file.ts';
import { language, t } from '../words.ts';
import { Mark } from './icons.tsx';
import { StreamView } from './StreamView.tsx';
import { tabName } from './tab-names.ts';
import { moveInTabs, tabProps } from './tablist.ts';
import { Waterfall } from './Waterfall.tsx';

/** A session that somebody has handed over, to be read: nothing is sent to any gateway. */
export function SessionView({ session }: { readonly session: KeptSession }) {
  const [chosen, choose] = useState(0);
  const tab = session.tabs[chosen];
  const leave = () => {
    forgetLink();
    showSession(undefined);
  };
  return (
    <div className="graphiql-container wb-page wb-kept">
      <header className="wb-header">
        <Mark />
        <h1>{t('Session from {when}', { when: session.at.toLocaleString(language) })}</h1>
        <span className="wb-chips">
          <button type="button" className="wb-button wb-primary" onClick={leave}>
            {t('Leave this session')}
          </button>
        </span>
      </header>
      <main className="wb-session">
        <div className="wb-tabs">
          <div className="wb-tablist" role="tablist" aria-label={t('Operations')} onKeyDown={moveInTabs}>
            {session.tabs.map(({ title }, index) => (
              // What is only read keeps its order, and two tabs may have one title.
              // biome-ignore lint/suspicious/noArrayIndexKey: see above
              <div key={index} className="wb-tab" role="presentation" data-active={index === chosen}>
                <button {...tabProps(index === chosen)} onClick={() => choose(index)}>
                  {tabName(title)}
                </button>
              </div>
            ))}
          </div>
        </div>
        {tab !== undefined && <Tab key={chosen} tab={tab} />}
      </main>
    </div>
  );
}

function Tab({ tab: { title, query, variables, answer, stream, isCut } }: { readonly tab: KeptTab }) {
  const { extensions: _shownBelow, ...result } = answer?.result ?? {};
  return (
    <div className="wb-columns">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what is long is read on by the arrow keys */}
      <section className="wb-left" aria-label={t('Operation')} tabIndex={0}>
        <pre>{query}</pre>
        {!/^\s*(\{\s*\})?\s*$/.test(variables) && (
          <>
            <h2>{t('Variables')}</h2>
            <pre>{variables}</pre>
          </>
        )}
      </section>
      <section className="wb-right wb-results" aria-label={t('Result')}>
        {stream !== undefined && (
          <StreamView
            tab={undefined}
            title={title}
            stream={stream}
            onCredit={undefined}
            onPayment={undefined}
          />
        )}
        {stream === undefined && answer !== undefined && (
          <>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: as above */}
            <pre className="wb-kept-result" tabIndex={0}>
              {JSON.stringify(result, null, 2)}
            </pre>
            <Waterfall answer={answer} />
          </>
        )}
        {stream === undefined && answer === undefined && (
          <p className="wb-empty">
            {isCut
              ? t('What was sent and what came of it are left out: they may hold a secret or a token.')
              : t('This operation was not played.')}
          </p>
        )}
      </section>
    </div>
  );
}
