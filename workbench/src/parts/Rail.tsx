import { ReloadIcon, useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { t } from '../words.ts';
import { paneName } from './pane-names.ts';

/** The panes beside the editor. */
export function Rail() {
  const { plugins, visiblePlugin, isIntrospecting } = useGraphiQL((state) => ({
    plugins: state.plugins,
    visiblePlugin: state.visiblePlugin,
    isIntrospecting: state.isIntrospecting,
  }));
  const { setVisiblePlugin, introspect } = useGraphiQLActions();
  return (
    <nav className="wb-rail" aria-label={t('Panes')}>
      {plugins.map((plugin) => {
        const { title, icon: Icon } = plugin;
        const isOpen = plugin === visiblePlugin;
        return (
          <button
            key={title}
            type="button"
            className="wb-icon"
            data-pane={title}
            aria-label={paneName(title)}
            aria-pressed={isOpen}
            title={paneName(title)}
            onClick={() => setVisiblePlugin(isOpen ? null : plugin)}
          >
            <Icon />
          </button>
        );
      })}
      <button
        type="button"
        className="wb-icon wb-last"
        aria-label={t('Read the schema again')}
        title={t('Read the schema again')}
        // A button that is disabled would lose the focus.
        aria-disabled={isIntrospecting}
        onClick={() => !isIntrospecting && void introspect()}
      >
        <ReloadIcon />
      </button>
    </nav>
  );
}
