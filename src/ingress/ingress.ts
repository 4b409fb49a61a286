import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { clock } from '../common/clock.ts';
import { entropy } from '../common/entropy.ts';
import type { Logger } from '../common/logger.ts';
import { noteRefusal } from '../common/refusals.ts';
import { rootReason } from '../common/root-reason.ts';
import { UnreplicatedError } from '../events/errors.ts';
import type { Appended, EventLog, MoneyInDecision, NewEvent } from '../events/log.ts';
import { type EventMetrics, silentMetrics } from '../events/metrics.ts';
import { Quarantine, type QuarantineReason } from '../events/quarantine.ts';
import {
  type IngressAddress,
  type IngressTarget,
  isOfKnownType,
  isSigned,
  isToken,
  readIngressPath,
} from './addresses.ts';
import { createDeliveryBodies, discard } from './body.ts';
import { createDecider } from './decider.ts';
import { type Delivery, decode } from './decode.ts';
import { createJudge, isItsRefusal, type Judge, mayBeRefunded, type RefundOf } from './judge.ts';
import { createRefusalLog, type Refusal } from './refusal-log.ts';

export interface IngressOptions {
  readonly log: EventLog;
  /** Keys of the signatures. Each is accepted, so that they can be rotated. */
  readonly secrets: readonly string[];
  /** Header in which the provider presents the registered token; unset, no token is looked for. */
  readonly tokenHeader?: string | undefined;
  /** The address of the decider on SPEI credits; without it nobody is asked, and new ones are accepted. */
  readonly decisionUrl?: string | undefined;
  /** Folder of the quarantine. */
  readonly dataDir: string;
  readonly metrics?: EventMetrics | undefined;
  readonly logger: Logger;
  /** Asked before a 422, which would return the money of a refunded credit a second time. */
  readonly refundOf: RefundOf;
  /** Called with each delivery that has been stored, before it is answered. */
  readonly onStored?: (clientId: string, delivery: Delivery) => void;
}

export interface Ingress {
  /** Answers one request under `/webhooks/`. Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Refuses later deliveries, and resolves once those under way have been answered. May be called again. */
  drain(): Promise<void>;
}

/** Seconds after which a refused provider may try again. */
const RETRY_AFTER = '2';
/** For a 503 before the body was read. */
const LATER = { 'retry-after': RETRY_AFTER, connection: 'close' };

/** Takes webhooks: verifies, decodes and keeps each, and only then answers. */
export function createIngress(options: IngressOptions): Ingress {
  const { log, secrets, tokenHeader, decisionUrl, logger, refundOf, onStored } = options;
  const { metrics = silentMetrics } = options;
  const quarantine = new Quarantine({ dataDir: options.dataDir, logger, metrics });
  const judge =
    decisionUrl === undefined ? undefined : createJudge(createDecider(decisionUrl, logger), refundOf, logger);
  const keeping: Keeping = { log, judge, metrics, quarantine, logger, refundOf, onStored };
  const readBody = createDeliveryBodies();
  const logRefusal = createRefusalLog(logger);
  const inFlight = new Set<Promise<void>>();
  let drained: Promise<void> | undefined;
  const drain = async (): Promise<void> => {
    await Promise.all(inFlight);
    quarantine.close();
    await judge?.close();
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const turnAway = (refusal: Refusal, headers?: OutgoingHttpHeaders): void => {
      logRefusal(refusal);
      refuse(request, response, refusal.status, headers);
    };
    if (request.method !== 'POST') return turnAway({ status: 405, reason: 'method' }, { allow: 'POST' });
    const target = readIngressPath((request.url ?? '').split('?', 1)[0] ?? '');
    if (target === undefined) return turnAway({ status: 401, reason: 'address' });
    const flaw = flawIn(request, target, options);
    if (flaw !== undefined) return turnAway({ status: 401, reason: flaw, target });
    if (!isOfKnownType(target)) return turnAway({ status: 401, reason: 'type', target });
    if (secrets.length > 1 && flawIn(request, target, { tokenHeader, secrets: secrets.slice(0, 1) })) {
      metrics.olderSecret(target.type);
    }
    if (drained !== undefined) return refuse(request, response, 503, LATER);
    const body = await readBody(request, target.clientId);
    switch (body.kind) {
      case 'gone':
        return;
      case 'too-large':
        noteRefusal('delivery_length');
        return turnAway({ status: 413, reason: 'length', target });
      case 'too-slow':
        return turnAway({ status: 408, reason: 'time', target }, { connection: 'close' });
      case 'full':
        noteRefusal('deliveries');
        return turnAway({ status: 503, reason: 'full', target }, LATER);
      case 'whole':
        return take(keeping, target, body.bytes, response).finally(body.release);
    }
  };

  return {
    async handle(request, response) {
      const serving = serve(request, response).catch((error: unknown) => {
        logger.error({ error: String(error) }, 'a webhook failed unexpectedly');
        if (!response.headersSent) answer(response, 503, { 'retry-after': RETRY_AFTER });
      });
      inFlight.add(serving);
      await serving;
      inFlight.delete(serving);
    },
    drain() {
      drained ??= drain();
      return drained;
    },
  };
}

/** Returns what shows that a request is not the provider's: its signature, or its token where one is looked for. */
function flawIn(
  request: IncomingMessage,
  target: IngressAddress,
  { secrets, tokenHeader }: Pick<IngressOptions, 'secrets' | 'tokenHeader'>,
): 'signature' | 'token' | undefined {
  if (!isSigned(target, secrets)) return 'signature';
  if (tokenHeader === undefined) return undefined;
  return isToken(headerOf(request, tokenHeader), target, secrets) ? undefined : 'token';
}

/** The parts by which a delivery is kept. */
interface Keeping extends Pick<IngressOptions, 'log' | 'logger' | 'refundOf'> {
  readonly onStored: IngressOptions['onStored'] | undefined;
  readonly judge: Judge | undefined;
  readonly metrics: EventMetrics;
  readonly quarantine: Quarantine;
}

/** Decodes and keeps the body of a webhook, then answers it. A body that cannot become an event goes into the quarantine. */
async function take(
  keeping: Keeping,
  target: IngressTarget,
  bytes: Buffer,
  response: ServerResponse,
): Promise<void> {
  const { quarantine, logger, refundOf, onStored } = keeping;
  const { clientId, type } = target;
  const receivedAt = new Date(clock.now()).toISOString();
  const putAside = (reason: QuarantineReason): void =>
    quarantine.put({ receivedAt, clientId, type, reason, body: bytes });
  const decoded = decode(type, clientId, bytes);
  if ('problem' in decoded) {
    putAside(decoded.problem);
    return answer(response, 400);
  }
  const { delivery } = decoded;
  // Made once for the delivery, so that appending it again after a lost reply is safe.
  const id = delivery.messageId ?? entropy.uuid();
  const { transactionId } = delivery;
  const isHeard = (): boolean => !response.destroyed;
  let kept: Appended | 'undecided';
  try {
    kept = await keep(keeping, target, { ...delivery, id }, receivedAt, isHeard);
  } catch (error) {
    const fields = { clientId, type, error: String(error), reason: rootReason(error) };
    if (error instanceof UnreplicatedError)
      logger.warn(
        { ...fields, eventId: id, transactionId },
        'a webhook got 503, and the log has it: a replica lacks it',
      );
    else logger.warn(fields, 'a webhook could not be kept');
    return answer(response, 503, { 'retry-after': RETRY_AFTER });
  }
  if (kept === 'undecided') {
    putAside('undecided');
    return answer(response, 503, { 'retry-after': RETRY_AFTER });
  }
  onStored?.(clientId, delivery);
  if (kept.conflict) putAside('conflict');
  const { duplicate: redelivery, cursor } = kept;
  // A message without an id that is recognised is an event under the id that was made for its first delivery.
  const eventId = redelivery ? delivery.messageId : id;
  const named = { clientId, eventId, transactionId, redelivery };
  const isRefunded = isItsRefusal(kept, delivery) && (await mayBeRefunded(refundOf, logger, named));
  const wasHeard = isHeard();
  const status = answerStored(response, kept, delivery, isRefunded);
  if (wasHeard) logAnswer(logger, status, named, isRefunded);
  else
    logger.warn({ ...named, type, status }, 'a webhook was kept, and its sender had left before the answer');
  const fields = { clientId, type, eventId, redelivery, spooled: cursor === null, status };
  logger.debug(fields, 'a webhook was taken in');
}

/** Keeps a delivery, or recognises it. If there is a decider, it decides on an SPEI credit first. */
async function keep(
  keeping: Keeping,
  { clientId, type }: IngressTarget,
  delivery: Delivery & { readonly id: string },
  receivedAt: string,
  isHeard: () => boolean,
): Promise<Appended | 'undecided'> {
  const { log, judge, metrics } = keeping;
  const { id, contents, text, isSpeiCredit } = delivery;
  const identity = delivery.identity ?? id;
  const event = { id, type, receivedAt, payload: text, identity, contents };
  if (!isSpeiCredit || judge === undefined) {
    return log.append(clientId, { ...event, ...undisputed(delivery, type), spoolable: true });
  }
  const known = await log.recall(clientId, event);
  if (known !== undefined) {
    // The log counts messages that it recognises only when it appends.
    metrics.duplicate(type, known.conflict);
    return known;
  }
  const { transactionId } = delivery;
  const verdict = await judge.ask(
    { clientId, transactionId, identity: `${identity} ${contents}`, text },
    isHeard,
  );
  if (verdict === undefined) return 'undecided';
  return log.append(clientId, { ...event, ...verdict, transactionId, spoolable: false });
}

function undisputed(delivery: Delivery, type: NewEvent['type']): { decision?: MoneyInDecision } {
  if (type !== 'MONEY_IN') return {};
  return { decision: delivery.isSpeiCredit ? 'ACCEPTED' : 'INFORMED' };
}

/**
 * Answers with what the log has returned. This is the only place that may answer 422, which refunds money: it does so for the
 * credit alone that was judged. Another credit under the same message id gets 503, because nobody has judged it, and so does one that a
 * refund of this gateway returns.
 */
function answerStored(
  response: ServerResponse,
  kept: Appended,
  delivery: Delivery,
  isRefunded: boolean,
): 201 | 422 | 503 {
  if (kept.answer.status === 201) {
    answer(response, 201);
    return 201;
  }
  if (!isItsRefusal(kept, delivery) || isRefunded) {
    answer(response, 503, { 'retry-after': RETRY_AFTER });
    return 503;
  }
  const { refundReason } = kept.answer;
  const body = JSON.stringify(refundReason === undefined ? {} : { refundReason });
  response.writeHead(422, { 'content-type': 'application/json' }).end(body);
  return 422;
}

/** Logs an answer other than 201. The reason of a refusal may name a person, and stays out of the log. */
function logAnswer(logger: Logger, status: 201 | 422 | 503, fields: object, isRefunded: boolean): void {
  if (status === 422) logger.info(fields, 'a credit was refused');
  if (status === 503 && !isRefunded)
    logger.error(fields, 'a credit has the message id of another, which was refused');
}

function answer(
  response: ServerResponse,
  status: 201 | 400 | 401 | 405 | 408 | 413 | 503,
  headers: OutgoingHttpHeaders = {},
): void {
  response.writeHead(status, { ...headers, 'content-length': 0 }).end();
}

/** Answers a request whose body is not needed, or no longer. */
function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  status: 401 | 405 | 408 | 413 | 503,
  headers?: OutgoingHttpHeaders,
): void {
  discard(request);
  answer(response, status, headers);
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name.toLowerCase()];
  return Array.isArray(value) ? value[0] : value;
}
