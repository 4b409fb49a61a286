/**
 * The layers between a request and its answer, from the outermost to the innermost. This is the only place that states their
 * order: `plugin-stack.ts` builds the plugins from it, and docs/layers.md, which says what each may change and must never, is
 * compared with it by a test.
 */
export const LAYERS = [
  // Of HTTP and of sockets (transport), of answers of the REST service and of reads of the event log: all work that waits for its turn.
  'turns',
  'fast-path',
  // Plugins of the executor. What wraps an execution wraps all that stand below.
  'pushed-streams',
  'tracing',
  'introspection',
  'upstream-report',
  'operation-metrics',
  'server-sent-events',
  'drain',
  'limits',
  'error-masking',
  'credential-end',
  'stream-limit',
  'trusted-documents',
  'media-types',
  'csrf-prevention',
  'sharing',
  'admission',
  'prefetch',
  'operation-context',
  'plans',
  'declared-variables',
  'kept-documents',
  // Beneath the resolvers (operation, upstream).
  'shared-reads',
] as const;

export type Layer = (typeof LAYERS)[number];

/** The layers that stand in the executor. */
export type PluginLayer = Exclude<Layer, 'turns' | 'fast-path' | 'shared-reads'>;

/**
 * The layers that can be switched off, to find a fault (`LAYERS_OFF`, docs/layers.md): without one of them every answer is the
 * same, and costs more. Two may make an answer older: `sharing` and `shared-reads`, as both let work be joined that began up to 1 s ago.
 * Where the gateway holds the credentials, `shared-reads` also keeps answers of lists. What protects somebody is no such layer.
 */
export const SWITCHED_LAYERS = [
  'turns',
  'fast-path',
  'admission',
  'sharing',
  'prefetch',
  'plans',
  'kept-documents',
  'shared-reads',
] as const satisfies readonly Layer[];

export type SwitchedLayer = (typeof SWITCHED_LAYERS)[number];

/** In the order in which the executor takes them: the innermost first. */
export const inPluginOrder = (plugins: Readonly<Record<PluginLayer, object | undefined>>): object[] =>
  LAYERS.toReversed().flatMap((layer) => {
    const plugin: object | undefined = Reflect.get(plugins, layer);
    return plugin === undefined ? [] : [plugin];
  });
