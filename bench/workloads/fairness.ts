import { writeFile } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import { startAside } from '../lib/aside-process.ts';
import { type Contender, startContender, temporaryFolder } from '../lib/contenders.ts';
import { clientCredential, credentials, SERVICE } from '../lib/credentials.ts';
import { client, join, PAYMENT_DONE, payment, transaction, type Work } from '../lib/documents.ts';
import { load } from '../lib/load.ts';
import { number, type Section } from '../lib/section.ts';
import { percentile } from '../lib/stats.ts';
import { startStub } from '../lib/stub.ts';
import { CLIENT_ID, uuid } from '../upstream/data.ts';

const LATENCY_MS = 50;
const CONNECTIONS = 400;
const REQUESTS = 300;
/** Different joins: ten connections share each at a time, where one caller has them all. */
const JOINS = 40;
/** Subjects of the greedy client, in service mode. */
const SUBJECTS = 100;
/** How many times slower the other's reads and payments may be. */
const LIMIT = 1.5;

/** Who asks, and of what gateway. */
interface Parties {
  readonly work: string;
  readonly title: string;
  readonly method: string;
  /** The tokens of whoever wants all. */
  readonly greedy: readonly string[];
  readonly other: string;
  readonly env: Readonly<Record<string, string>>;
}

/** One caller with 400 connections of joins, and what becomes of another's reads and payments. */
export function w15(): Promise<Section> {
  const [greedy = '', other = ''] = credentials(2);
  return beside({
    work: 'W15',
    title: 'W15, beside one caller with 400 connections',
    method: 'One caller asks for joins of 60 to 99 instruments',
    greedy: [greedy],
    other,
    env: {},
  });
}

/** The same in service mode, where both are clients of their own behind one gateway, and the greedy one has many subjects. */
export async function w20(): Promise<Section> {
  await using folder = await temporaryFolder();
  const ids = [CLIENT_ID, uuid('client', 1)] as const;
  const file = joinPath(folder.path, 'clients.json');
  const clients = ids.map((clientId) => ({ clientId, clientSecret: 'secret', apiKey: 'key' }));
  await writeFile(file, JSON.stringify(clients), { mode: 0o600 });
  const {
    UPSTREAM_API_KEY: _key,
    UPSTREAM_CLIENT_ID: _id,
    UPSTREAM_CLIENT_SECRET: _secret,
    ...env
  } = SERVICE;
  return await beside({
    work: 'W20',
    title: 'W20, beside one client with 400 connections, both behind one gateway in service mode',
    method: `${SUBJECTS} subjects of one client ask for joins of 60 to 99 instruments`,
    greedy: Array.from({ length: SUBJECTS }, (_, index) => clientCredential(ids[0], `subject ${index}`)),
    other: clientCredential(ids[1], 'the other'),
    env: { ...env, UPSTREAM_CLIENTS: file, AUTH_CLIENT_CLAIM: 'client_id' },
  });
}

async function beside({ work, title, method, greedy, other, env }: Parties): Promise<Section> {
  await using stub = await startStub();
  await stub.configure({ latencyMs: LATENCY_MS });
  await using contender = await startContender('Pasarela', stub.url, env);
  const others = async () => {
    const read = await ask(contender, () => transaction, [other], REQUESTS, 2);
    const paid = await ask(contender, payment, [other], REQUESTS, 2);
    return { read: percentile(read.latenciesMs, 0.95), paid: percentile(paid.latenciesMs, 0.99) };
  };
  // Each is known before anything is timed.
  for (const tokens of [greedy, [other]]) await ask(contender, () => client, tokens, tokens.length + 2, 1);
  await ask(contender, () => transaction, [other], 100, 2);
  await ask(contender, payment, [other], 100, 2);
  let joins = 0;
  const greed = () => {
    joins += 1;
    return join(60 + (joins % JOINS));
  };
  await ask(contender, greed, greedy, 100, 8);

  const alone = await others();
  // As many as it takes for each token to ask for each of the joins.
  const shots = Array.from({ length: JOINS * greedy.length }, (_, index) =>
    contender.shot(greed(), greedy[index % greedy.length] ?? ''),
  );
  const meanwhile = await startAside({ url: contender.server.url, shots, connections: CONNECTIONS });
  const besideThem = await others();
  const served = meanwhile.end();
  const read = besideThem.read / alone.read;
  const paid = besideThem.paid / alone.paid;
  const reached = { work, limit: LIMIT, unit: '' };
  return {
    title,
    method: `${method} over ${CONNECTIONS} connections; another reads transactions and pays, two at a time. ${LATENCY_MS} ms a REST call.`,
    columns: ['', 'alone, ms', 'beside it, ms', '×'],
    rows: [
      ['transaction(id), p95', number(alone.read), number(besideThem.read), read.toFixed(2)],
      ['a payment, p99', number(alone.paid), number(besideThem.paid), paid.toFixed(2)],
      ['joins answered meanwhile', '', number(served), ''],
    ],
    goals: [
      { ...reached, what: 'transaction(id), p95, × alone', reached: read },
      { ...reached, what: 'a payment, p99, × alone', reached: paid },
    ],
  };
}

/** @param tokens those who ask, in turn. All are to be answered without an error. */
function ask(
  contender: Contender,
  work: () => Work,
  tokens: readonly string[],
  requests: number,
  connections: number,
) {
  return load({
    url: contender.server.url,
    requests,
    connections,
    shot: (index) => contender.shot(work(), tokens[index % tokens.length] ?? ''),
    check({ text }) {
      const isWrong = text.includes('"errors"') || (work === payment && !text.includes(PAYMENT_DONE));
      if (isWrong) throw new Error(text.slice(0, 300));
    },
  });
}
