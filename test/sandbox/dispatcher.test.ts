import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { folder } from '../helpers/packages.ts';

// A process of its own: here undici is loaded already.
const PROGRAM = `
const { createSandbox } = await import(${JSON.stringify(folder('packages/sandbox/src/index.ts'))});
const place = Symbol.for('undici.globalDispatcher.1');
const own = { dispatch: () => true };
globalThis[place] = own;
await using sandbox = await createSandbox();
// As on Node 22, whose fetch does not know this place.
globalThis[Symbol.for('undici.globalDispatcher.2')] = undefined;
await sandbox.registerWebhook({ type: 'MONEY_IN', url: 'http://127.0.0.1:1/', token: 'a' });
const { deliveries } = await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1.00' });
console.log(deliveries[0].attempts.length, globalThis[place] === own);
`;

test('a webhook that is sent leaves the dispatcher of the process, such as a MockAgent, where it is', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', PROGRAM]);
  expect(stdout).toBe('1 true\n');
});
