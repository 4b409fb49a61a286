/**
 * Receives what `pasarela events forward` posts, and keeps each event once in Postgres. It answers 204 when the transaction has been
 * committed, so that an event is never acknowledged and lost; a repeat changes nothing, and is answered the same. A second event may
 * have the id of the first, and say otherwise: what tells a repeat is all of the event but its cursor.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { Pool, type PoolClient } from 'pg';

// biome-ignore lint/style/noProcessEnv: it is a program of one file, and these are all its settings.
const { FORWARD_SECRET = '', PORT = '8080' } = process.env;
/** Several while the secret rotates, with commas between them: the new one first. */
const SECRETS = FORWARD_SECRET.split(',');
if (SECRETS.includes('')) throw new Error('FORWARD_SECRET is not set, or one of its secrets is empty.');
/** How far the sender's clock may be from this one, in seconds. */
const CLOCKS_APART = 300;
const MAX_BODY_BYTES = 1_048_576;

// Where Postgres is, PGHOST, PGDATABASE, PGUSER and PGPASSWORD say.
const pool = new Pool({ max: 4 });
// A connection that rests when Postgres goes away: the next event takes another one.
pool.on('error', (error) => process.stderr.write(`${error.message}\n`));
// One that an event has taken: its statement fails, and says why. Without a listener Node would end the process.
pool.on('connect', (connection) => void connection.on('error', () => undefined));
await pool.query(await readFile(new URL('schema.sql', import.meta.url), 'utf8'));

interface Event {
  readonly id: string;
  readonly cursor: string;
  readonly type: string;
  readonly receivedAt: string;
  readonly transactionId?: string | null;
  readonly decision?: string | null;
  readonly subCategory?: string | null;
  readonly amount?: { readonly amount: string; readonly currency: string };
  readonly beneficiary?: { readonly account?: string | null } | null;
  readonly trackingKey?: string | null;
}

/** The signature is over the body as it came: it is checked before anything is made of it. */
function isSigned(header: string | undefined, body: Buffer): boolean {
  const [, time = '', signature = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header ?? '') ?? [];
  if (signature === '' || Math.abs(Date.now() / 1000 - Number(time)) > CLOCKS_APART) return false;
  const given = Buffer.from(signature, 'hex');
  const place = SECRETS.findIndex((secret) =>
    timingSafeEqual(createHmac('sha256', secret).update(`${time}.`).update(body).digest(), given),
  );
  if (place > 0) process.stderr.write(`Signed with secret ${place + 1} of FORWARD_SECRET, not the first.\n`);
  return place !== -1;
}

/** What a credit is, as docs/payments.md has it ("What to decide on what"); undefined where nobody has decided on it. */
function verdictOf({ decision, subCategory }: Event): 'CREDIT' | 'RETURNED' | undefined {
  if (decision === 'REJECTED') return 'RETURNED';
  const isInternal = decision === 'INFORMED' && subCategory === 'INT_CREDIT';
  return decision === 'ACCEPTED' || isInternal ? 'CREDIT' : undefined;
}

/** The key of an event: a repeat has the same, also after a gap, when its cursor may be another. */
function keyOf(event: Event): string {
  const { cursor, ...told } = event;
  return createHash('sha256').update(JSON.stringify(told)).digest('hex');
}

/** Books a credit once for each transaction, whose id may be written in either case. @returns what a person has to look at */
async function book(connection: PoolClient, key: string, event: Event): Promise<string | undefined> {
  const { amount: money, transactionId } = event;
  const verdict = verdictOf(event);
  if (verdict === undefined) return 'nobody has decided on this credit';
  if (transactionId == null || money === undefined) return 'it names no transaction';
  const { amount, currency } = money;
  const { rowCount } = await connection.query(
    `INSERT INTO credits (transaction_id, verdict, event_key, amount, currency, clabe, tracking_key, received_at)
     VALUES (lower($1), $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (transaction_id) DO NOTHING`,
    [
      transactionId,
      verdict,
      key,
      amount,
      currency,
      event.beneficiary?.account,
      event.trackingKey,
      event.receivedAt,
    ],
  );
  if (rowCount === 1) return undefined;
  const { rows } = await connection.query(
    'SELECT verdict = $2 AND amount = $3 AS same FROM credits WHERE transaction_id = lower($1)',
    [transactionId, verdict, amount],
  );
  return rows[0]?.same === true ? undefined : 'an earlier event says otherwise of this transaction';
}

/** All rows or none. A repeat finds the first row, and adds no second. @param text of the event, as it came */
async function keep(event: Event, text: string): Promise<void> {
  const key = keyOf(event);
  const connection = await pool.connect();
  try {
    await connection.query('BEGIN');
    const { rowCount } = await connection.query(
      'INSERT INTO events (key, id, type, received_at, event) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key) DO NOTHING',
      [key, event.id, event.type, event.receivedAt, text],
    );
    if (rowCount === 1 && event.type === 'MONEY_IN') {
      const why = await book(connection, key, event);
      if (why !== undefined)
        await connection.query('INSERT INTO for_a_person (event_key, why) VALUES ($1, $2)', [key, why]);
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
    const text = body.toString();
    await keep(JSON.parse(text), text);
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
