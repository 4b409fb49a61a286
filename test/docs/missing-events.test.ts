import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { encodeCursor, newEpoch } from '../../src/events/cursor.ts';
import { seenKey } from '../../src/events/redis/keys.ts';
import { SEAL_KEY_BYTES, sealCursor } from '../../src/events/seal.ts';
import { decode } from '../../src/ingress/decode.ts';
import { speiCredit } from '../helpers/ingress.ts';
import { blocks, ROOT, readPage } from './pages.ts';

const run = promisify(execFile);

it('the command of docs/missing-events.md reads from a cursor when the log took the event, and nothing from a sealed one', async () => {
  const command = blocks(await readPage('docs/missing-events.md'), 'sh').find(({ text }) =>
    text.trimEnd().endsWith('CURSOR'),
  );
  const moment = '2026-03-02T16:00:01.234Z';
  const clientId = randomUUID();
  const position = `${Date.parse(moment)}-7`;
  const cursor = encodeCursor(clientId, { epoch: newEpoch(Date.parse(moment)), position });
  const read = (text: string) =>
    run('sh', ['-c', String(command?.text.replace('CURSOR', text))], { cwd: ROOT });
  expect((await read(cursor)).stdout).toBe(`${moment}\n`);
  const holder = { key: randomBytes(SEAL_KEY_BYTES), clientId, customerId: randomUUID() };
  await expect(read(sealCursor(holder, cursor, 'stable'))).rejects.toThrow('Invalid time value');
  // A sealed cursor is bytes by chance: these look like a position.
  const sealedByChance = Buffer.from('\u0002a|b|c|2-7').toString('base64url');
  await expect(read(sealedByChance)).rejects.toThrow('Invalid time value');
});

it('the command of docs/missing-events.md asks for the key by which a credit is recognised', async () => {
  const command = blocks(await readPage('docs/missing-events.md'), 'sh').find(({ text }) =>
    text.startsWith('redis-cli PTTL'),
  );
  const [clientId, messageId] = [randomUUID(), randomUUID()];
  const decoded = decode(
    'MONEY_IN',
    clientId,
    Buffer.from(JSON.stringify(speiCredit({ id_msg: messageId }))),
  );
  if (!('delivery' in decoded)) throw new Error('the credit is read');
  const { identity = '' } = decoded.delivery;
  const asked = String(command?.text.replace('redis-cli PTTL', 'printf %s'));
  const env = { PATH: process.env['PATH'], CLIENT_ID: clientId, ID_MSG: messageId };
  const { stdout } = await run('sh', ['-c', asked], { env });
  expect(stdout).toBe(seenKey(clientId, { type: 'MONEY_IN', identity }));
});
