/**
 * Receives what `pasarela events forward` posts, and keeps each event once in Postgres. It answers 204 when the transaction has been
 * committed, so that an event is never acknowledged and lost; a repeat changes nothing, and is answered the same.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { Pool } from 'pg';

// biome-ignore lint/style/noProcessEnv: it is a program of one file, and these are all its settings.
const { FORWARD_SECRET = '', PORT = '8080' } = process.env;
if (FORWARD_SECRET === '') throw new Error('FORWARD_SECRET is not set.');
/** How far the sender's clock may be from this one, in seconds. */
const CLOCKS_APART = 300;
const MAX_BODY_BYTES = 1_048_576;

// Where Postgres is, PGHOST, PGDATABASE, PGUSER and PGPASSWORD say.
const pool = new Pool({ max: 4 });
// A connection that rests when Postgres goes away: the next event takes another one.
pool.on('error', (error) => process.stderr.write(`${error.message}\n`));
await pool.query(await readFile(new URL('schema.sql', import.meta.url), 'utf8'));

interface Event {
  readonly id: string;
  readonly type: string;
  readonly receivedAt: string;
  readonly transactionId?: string | null;
  readonly amount?: { readonly amount: string; readonly currency: string };
  readonly beneficiary?: { readonly account?: string | null } | null;
  readonly trackingKey?: string | null;
}

/** The signature is over the body as it came: it is checked before anything is made of it. */
function isSigned(header: string | undefined, body: Buffer): boolean {
  const [, time = '', signature = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header ?? '') ?? [];
  if (signature === '' || Math.abs(Date.now() / 1000 - Number(time)) > CLOCKS_APART) return false;
  const wanted = createHmac('sha256', FORWARD_SECRET).update(`${time}.`).update(body).digest();
  return timingSafeEqual(wanted, Buffer.from(signature, 'hex'));
}

/** Both rows or none. A repeat finds the first row, and adds no second. */
async function keep(event: Event): Promise<void> {
  const connection = await pool.connect();
  try {
    await connection.query('BEGIN');
    const { rowCount } = await connection.query(
      'INSERT INTO events (id, type, received_at, event) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING',
      [event.id, event.type, event.receivedAt, event],
    );
    if (rowCount === 1 && event.type === 'MONEY_IN' && event.amount !== undefined) {
      const { amount, currency } = event.amount;
      await connection.query(
        `INSERT INTO credits (event_id, transaction_id, amount, currency, clabe, tracking_key, received_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)`,
        [
          event.id,
          event.transactionId,
          amount,
          currency,
          event.beneficiary?.account,
          event.trackingKey,
          event.receivedAt,
        ],
      );
    }
    await connection.query('COMMIT');
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => undefined);
    throw error;
  } finally {
    connection.release();
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) throw new RangeError('the body is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const server = createServer(async (request, response) => {
  try {
    const body = await bodyOf(request);
    if (!isSigned(String(request.headers['pasarela-signature']), body)) {
      response.writeHead(401).end();
      return;
    }
    await keep(JSON.parse(body.toString()));
    response.writeHead(204).end();
  } catch (error) {
    // Of Postgres or the network: the sender tries the same event again, and counts no refusal.
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    response.writeHead(503).end();
  }
});
server.listen(Number(PORT), '127.0.0.1', () => process.stdout.write(`Listening on ${PORT}.\n`));

process.once('SIGTERM', () => {
  server.close(() => void pool.end());
});
