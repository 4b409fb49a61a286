import { useGraphiQL } from '@graphiql/react';
import { useRef } from 'react';
import { useAnswers } from '../answers.ts';
import { copyText } from '../clipboard.ts';
import { type KeptTab, sessionLink, writeSession } from '../session-file.ts';
import { useStreams } from '../stream-store.ts';
import { t } from '../words.ts';
import { SessionIcon } from './icons.tsx';
import { OpenSession } from './OpenSession.tsx';
import { useSaid } from './said.ts';

const SAID_MS = 5_000;

/** Hands over what was done here: operations, results with their REST calls, and events, as a file or as a link. */
export function SessionMenu() {
  const tabs = useTabs();
  const [said, tell] = useSaid(SAID_MS);
  const menu = useRef<HTMLDetailsElement>(null);
  const save = () => {
    const address = URL.createObjectURL(new Blob([writeSession(tabs())], { type: 'application/json' }));
    const link = Object.assign(document.createElement('a'), {
      href: address,
      download: 'pasarela-session.json',
    });
    link.click();
    URL.revokeObjectURL(address);
    tell(t('Saved. The page opens the file without any gateway.'));
  };
  const copy = async () => {
    const link = await sessionLink(tabs());
    if (link === undefined) return tell(t('This session is too long for a link: save it as a file.'));
    tell((await copyText(link)) ? t('Link copied') : t('The browser does not allow it'));
  };
  const close = () => {
    menu.current?.removeAttribute('open');
    menu.current?.querySelector('summary')?.focus();
  };
  return (
    <details
      className="wb-menu"
      ref={menu}
      onKeyDown={(event) => event.key === 'Escape' && close()}
      onBlur={(event) => {
        if (event.relatedTarget !== null && !event.currentTarget.contains(event.relatedTarget)) {
          event.currentTarget.removeAttribute('open');
        }
      }}
    >
      <summary className="wb-chip" title={t('Save or hand over this session')}>
        <SessionIcon /> <span>{t('Session')}</span>
      </summary>
      <div className="wb-menu-items">
        <button type="button" className="wb-button" onClick={save}>
          {t('Save as a file')}
        </button>
        <button type="button" className="wb-button" onClick={() => void copy()}>
          {t('Copy a link to it')}
        </button>
        <OpenSession />
        <p className="wb-hint">
          {t(
            'It holds operations, variables, results and events, and no header. Of an operation with a secret or a token it holds the text alone.',
          )}
        </p>
        <p role="status">{said}</p>
      </div>
    </details>
  );
}

/** Reads the tabs as they are when they are asked for. */
function useTabs(): () => KeptTab[] {
  const { tabs, activeTabIndex, queryEditor, variableEditor } = useGraphiQL((state) => ({
    tabs: state.tabs,
    activeTabIndex: state.activeTabIndex,
    queryEditor: state.queryEditor,
    variableEditor: state.variableEditor,
  }));
  return () =>
    tabs.map(({ id, title, query, variables }, index) => {
      const isOpen = index === activeTabIndex;
      const stream = useStreams.getState()[id];
      return {
        title,
        query: (isOpen ? queryEditor?.getValue() : query) ?? '',
        variables: (isOpen ? variableEditor?.getValue() : variables) ?? '',
        answer: useAnswers.getState()[id],
        stream: stream === undefined ? undefined : { ...stream, frozen: undefined },
      };
    });
}
