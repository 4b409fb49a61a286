/**
 * Loaded beside a server whose memory is measured: on SIGUSR2 it collects garbage, so that what is measured is what the
 * server holds. Needs `--expose-gc`.
 */
process.on('SIGUSR2', () => void globalThis.gc?.());
