/**
 * The upstream that is measured against: a process of its own that answers every GET of the work at once, or after a
 * given latency, from bytes made beforehand where they are few. `POST /bench` sets latency and sizes; `GET /bench` counts
 * what was asked. A POST of money is answered, too, as `payment` in lib/documents.ts orders it.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { announce } from '../lib/announce.ts';
import {
  accounts,
  BANKS_PATH,
  banks,
  CLIENT_ID,
  customers,
  instruments,
  internalTransaction,
  pennyValidation,
  type Sizes,
  transaction,
} from './data.ts';

interface Settings extends Sizes {
  readonly latencyMs: number;
  /** The largest page of customers and accounts; null for all of them in one answer, whatever is asked for. */
  readonly largestPage: number | null;
}

/** Answers of lists this long are not kept: there are too many pages. */
const LARGE = 10_000;
const DEFAULT_PAGE = 50;

let settings: Settings = { instruments: 1_000, customers: 20, latencyMs: 0, largestPage: null };
let answers = new Map<string, Buffer>();
let requests = 0;

const CLIENT = `/v1/clients/${CLIENT_ID}`;
/** The probe of a client that has nothing. */
const ANY_INSTRUMENTS = /^\/v1\/clients\/[0-9a-f-]{36}\/instruments$/;

const TRANSACTIONS = `${CLIENT}/transactions/`;
const INTERNAL_TRANSACTION = '/v1/transactions/internal_transaction';
/** What a gateway in service mode is given (docs/upstream-api.md, "CredentialToken"). It names the client. */
const TOKEN = {
  id: 'token',
  token: `token-of-${CLIENT_ID}`,
  status: 'ACTIVE',
  expires_at: '2099-01-01 00:00:00-06:00',
};
/** What a request says of its client: the path of a read, or the token of an order. */
const ANY_CLIENT = /^\/v1\/clients\/([0-9a-f-]{36})\//;
const ANY_TOKEN = /token-of-([0-9a-f-]{36})/;

/** The answer to any client: each has what the first one has, under an id of its own. */
function answerOf(path: string, authorization = ''): Buffer | undefined {
  const [, clientId = CLIENT_ID] = ANY_CLIENT.exec(path) ?? ANY_TOKEN.exec(authorization) ?? [];
  if (clientId === CLIENT_ID) return answerToFirst(path);
  const kept = path === INTERNAL_TRANSACTION ? undefined : answers.get(path);
  if (kept !== undefined) return kept;
  const first = answerToFirst(path.replace(clientId, CLIENT_ID));
  if (first === undefined) return undefined;
  const answer = Buffer.from(first.toString().replaceAll(CLIENT_ID, clientId));
  if (path !== INTERNAL_TRANSACTION) answers.set(path, answer);
  return answer;
}

function answerToFirst(path: string): Buffer | undefined {
  if (path === INTERNAL_TRANSACTION) return Buffer.from(JSON.stringify(internalTransaction(randomUUID())));
  if (path.startsWith(TRANSACTIONS) && !path.endsWith(transaction.id)) {
    // Each is asked for by a phone of its own: none is kept.
    return Buffer.from(JSON.stringify(pennyValidation(path.slice(TRANSACTIONS.length))));
  }
  let answer = answers.get(path);
  if (answer === undefined) {
    const body = bodyOf(new URL(path, 'http://stub'));
    if (body === undefined) return undefined;
    answer = Buffer.from(JSON.stringify(body));
    if (settings.customers < LARGE) answers.set(path, answer);
  }
  return answer;
}

function bodyOf({ pathname, searchParams }: URL): object | undefined {
  switch (pathname) {
    case BANKS_PATH:
      return { total_banks: banks.length, page: 1, page_size: banks.length, banks };
    case `${CLIENT}/customers`: {
      const { page, perPage, from } = pageOf(searchParams);
      const data = customers(settings, from, from + perPage);
      return { currentPage: page, perPage, totalItems: settings.customers, data };
    }
    case `${CLIENT}/accounts`: {
      const { page, perPage, from } = pageOf(searchParams);
      const data = accounts(settings, from, from + perPage);
      return { currentPage: page, perPage, totalItem: settings.customers, data };
    }
    case `${CLIENT}/instruments`: {
      const page = Number(searchParams.get('page') ?? 1);
      const perPage = Number(searchParams.get('per_page') ?? 100);
      return {
        data: instruments(settings, (page - 1) * perPage, page * perPage),
        currentPage: page,
        perPage,
        totalItems: settings.instruments,
      };
    }
    case `${CLIENT}/auth/credential-tokens`:
      return TOKEN;
    case `${TRANSACTIONS}${transaction.id}`:
      return transaction;
    default:
      return ANY_INSTRUMENTS.test(pathname)
        ? { data: [], currentPage: 1, perPage: 1, totalItems: 0 }
        : undefined;
  }
}

/** The page of customers or accounts that is asked for. */
function pageOf(query: URLSearchParams): { page: number; perPage: number; from: number } {
  const { largestPage, customers: perPage } = settings;
  if (largestPage === null) return { page: 1, perPage, from: 0 };
  const page = Number(query.get('page') ?? 1);
  const size = Math.min(largestPage, Number(query.get('per_page') ?? DEFAULT_PAGE));
  return { page, perPage: size, from: (page - 1) * size };
}

function send(response: ServerResponse, body: Buffer | undefined): void {
  if (body === undefined) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}

const server = createServer((request, response) => {
  const path = request.url ?? '/';
  if (path !== '/bench') {
    requests += 1;
    const answer = answerOf(path, request.headers.authorization);
    if (settings.latencyMs === 0) send(response, answer);
    else setTimeout(send, settings.latencyMs, response, answer);
    return;
  }
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => {
      if (chunks.length > 0) {
        settings = { ...settings, ...JSON.parse(Buffer.concat(chunks).toString()) };
        answers = new Map();
      }
      send(response, Buffer.from(JSON.stringify({ requests })));
    });
});

server.keepAliveTimeout = 600_000;
announce(server);
