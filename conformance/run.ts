// Tries a client: npm run conformance -- [--transport sse|websocket] [--case TEXT] -- COMMAND…
import { parseArgs } from 'node:util';
import { readCases, TRANSPORTS } from './case.ts';
import { play } from './play.ts';

const { values, positionals: command } = parseArgs({
  options: { transport: { type: 'string' }, case: { type: 'string', default: '' } },
  allowPositionals: true,
});
const transports = TRANSPORTS.filter((one) => values.transport === undefined || values.transport === one);
if (command.length === 0 || transports.length === 0) {
  console.error('Wants a command: [--transport sse|websocket] [--case TEXT] -- COMMAND…');
  process.exit(2);
}

// So that the client's program ends too.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

let count = 0;
let failures = 0;
for (const transport of transports) {
  for (const one of await readCases()) {
    if (!one.name.includes(values.case) || !one.transports.includes(transport)) continue;
    const wrong = await play(one, transport, command);
    count += 1;
    if (wrong !== undefined) failures += 1;
    const title = `${count} - ${transport}: ${one.name} (${one.rules.join(', ')})`;
    console.log(wrong === undefined ? `ok ${title}` : `not ok ${title}\n  ${wrong.replaceAll('\n', '\n  ')}`);
  }
}
console.log(`${count - failures} of ${count} cases passed.`);
process.exitCode = failures > 0 || count === 0 ? 1 : 0;
