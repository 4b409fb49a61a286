import { ReloadIcon, useGraphiQL, useGraphiQLActions } from '@graphiql/react';

/** The panes beside the editor. */
export function Rail() {
  const { plugins, visiblePlugin, isIntrospecting } = useGraphiQL((state) => ({
    plugins: state.plugins,
    visiblePlugin: state.visiblePlugin,
    isIntrospecting: state.isIntrospecting,
  }));
  const { setVisiblePlugin, introspect } = useGraphiQLActions();
  return (
    <nav className="wb-rail" aria-label="Panes">
      {plugins.map((plugin) => {
        const { title, icon: Icon } = plugin;
        const isOpen = plugin === visiblePlugin;
        return (
          <button
            key={title}
            type="button"
            className="wb-icon"
            aria-label={title}
            aria-pressed={isOpen}
            title={title}
            onClick={() => setVisiblePlugin(isOpen ? null : plugin)}
          >
            <Icon />
          </button>
        );
      })}
      <button
        type="button"
        className="wb-icon wb-last"
        aria-label="Read the schema again"
        title="Read the schema again"
        disabled={isIntrospecting}
        onClick={() => void introspect()}
      >
        <ReloadIcon />
      </button>
    </nav>
  );
}
