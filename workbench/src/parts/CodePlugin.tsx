import { type GraphiQLPlugin, tryParseJSONC, useGraphiQL } from '@graphiql/react';
import { useState } from 'react';
import { GRAPH_URL } from '../addresses.ts';
import { FORMATS } from '../code/formats.ts';
import { aloneIn } from '../code/snippet.ts';
import { kindOf, operationsOf } from '../fetcher.ts';
import { t } from '../words.ts';
import { CopyButton } from './CopyButton.tsx';
import { CodeIcon } from './icons.tsx';
import { moveInTabs, tabProps } from './tablist.ts';

/** The operation of the open tab, as a program would send it. */
function Code() {
  const { tabs, activeTabIndex } = useGraphiQL(({ tabs, activeTabIndex }) => ({ tabs, activeTabIndex }));
  const [chosen, choose] = useState('curl');
  const tab = tabs[activeTabIndex];
  const query = tab?.query ?? '';
  const [first] = operationsOf(query);
  const operationName = tab?.operationName ?? first?.name?.value;
  const format = FORMATS.find(({ name }) => name === chosen);
  const kind = kindOf({ query, operationName });
  if (format === undefined || kind === undefined) {
    return <p className="wb-empty">{t('Write an operation to see it as code.')}</p>;
  }
  const text = format.write({
    query: aloneIn(query, operationName),
    variables: parsed(tab?.variables),
    operationName,
    kind,
    graphUrl: GRAPH_URL,
  });
  return (
    <section className="wb-code" aria-label={t('Code')}>
      <h2>{t('As code')}</h2>
      <div className="wb-choices" role="tablist" aria-label={t('Client')} onKeyDown={moveInTabs}>
        {FORMATS.map(({ name }) => (
          <button key={name} {...tabProps(name === chosen)} onClick={() => choose(name)}>
            {name}
          </button>
        ))}
      </div>
      <p className="wb-hint">{t(format.needs)}</p>
      <div className="wb-code-text">
        <CopyButton text={() => text} label={t('Copy code')} />
        <pre>{text}</pre>
      </div>
    </section>
  );
}

function parsed(variables: string | null | undefined): Readonly<Record<string, unknown>> {
  try {
    // As the play button reads them: with comments and a comma at the end.
    return tryParseJSONC(variables ?? '') ?? {};
  } catch {
    return {};
  }
}

export const CODE_PLUGIN: GraphiQLPlugin = { title: 'Code', icon: CodeIcon, content: Code };
