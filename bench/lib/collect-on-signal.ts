/**
 * Loaded beside a server whose memory is measured: on SIGUSR2 it collects garbage, so that what is measured is what the
 * server holds. What V8 keeps in reserve for new objects, up to 64 MiB, is given back too: it depends on how busy a server was
 * a moment ago, and not on its sockets. Needs `--expose-gc`.
 */
process.on(
  'SIGUSR2',
  () => void globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' }),
);
