/**
 * A process of its own with an event log and an ingress, for tests that end it without warning. Its one argument is JSON:
 * `redisUrl`, `dataDir`, and `dieAfterAppend` to end itself when the log has an event and nobody has been told.
 * Writes the address it listens on to standard output; `/health` there is the log's own.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openEventLog } from '../../src/events/open.ts';
import { createIngress } from '../../src/ingress/ingress.ts';
import { recordingLogger } from '../helpers/events.ts';
import { SECRET } from '../helpers/ingress.ts';

// The test that starts this process writes the argument.
const options = JSON.parse(process.argv[2] ?? '{}') as {
  redisUrl?: string;
  dataDir: string;
  dieAfterAppend?: boolean;
};
// No test takes longer; a test that was cut short cannot end it.
setTimeout(() => process.exit(1), 1_800_000).unref();

const { redisUrl, dataDir, dieAfterAppend } = options;
const log = await openEventLog({ redisUrl, dataDir, retention: 10_000, logger: recordingLogger() });
if (dieAfterAppend === true) {
  const append = log.append.bind(log);
  log.append = async (clientId, event) => {
    await append(clientId, event);
    process.kill(process.pid, 'SIGKILL');
    return new Promise(() => {});
  };
}
const ingress = createIngress({
  ...{ log, secrets: [SECRET], dataDir, logger: recordingLogger() },
  refundOf: async () => undefined,
});
const server = createServer(async (request, response) => {
  if (request.url === '/health') response.end(JSON.stringify(await log.health()));
  else await ingress.handle(request, response);
});
server.listen(0, '127.0.0.1', () => {
  // A TCP server's address is this form.
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
