import { activeCredential, issueToken } from '../../packages/sandbox/src/auth.ts';
import { type Made, makeSandbox } from '../../packages/sandbox/src/start.ts';
import type { CallPool } from '../../src/upstream/call/pool.ts';
import type { Chance } from './chance.ts';
import { currentProcess, Process, type Simulation } from './core.ts';
import type { Network } from './network.ts';

/** What may become of a call of the REST service, each with its probability. */
export interface CallFaults {
  /** No connection is made. */
  readonly refused: number;
  /** The request is lost on its way. */
  readonly lostRequest: number;
  /** The service does what was asked, and its answer is lost. */
  readonly lostAnswer: number;
  /** Neither an answer nor an end of the connection. */
  readonly silence: number;
  /** The request arrives some seconds late. */
  readonly lateRequest: number;
  /** The answer comes some seconds late. */
  readonly lateAnswer: number;
  /** The request arrives twice, as by a proxy that repeats it; a transfer only where its key tells. */
  readonly twice: number;
  /** The service fails, before or after it has done what was asked. */
  readonly error: number;
  /** The answer is cut off, and said to be whole. */
  readonly truncated: number;
  /** The answer is JSON, and something else than documented. */
  readonly wrongShape: number;
  /** The answer is that to another payment, of another amount. */
  readonly mixed: number;
  /** Somebody on the way answers a change with a 4xx of its own, before or after the service has done what was asked. */
  readonly stranger: number;
}

export const NO_CALL_FAULTS: CallFaults = {
  refused: 0,
  lostRequest: 0,
  lostAnswer: 0,
  silence: 0,
  lateRequest: 0,
  lateAnswer: 0,
  twice: 0,
  error: 0,
  truncated: 0,
  wrongShape: 0,
  mixed: 0,
  stranger: 0,
};

/** What may become of a webhook. */
export interface WebhookFaults {
  readonly lost: number;
  readonly lostAnswer: number;
  readonly twice: number;
  readonly late: number;
}

/** How often a payment has left before. */
export interface LeftBefore {
  readonly withText: number;
  /** With the same idempotency key too; undefined where it has none. */
  readonly withKey: number | undefined;
}

/** A webhook that the gateway answered with 201. */
export interface Acknowledged {
  readonly clientId: string;
  readonly idMsg: string;
  /** When it left, and to which process. */
  readonly sentAt: number;
  readonly to: string;
  readonly type: string;
  readonly at: number;
}

/** A process whose next payment is answered so that nothing may be sent under its key again. */
export interface Closing {
  readonly process: Process | undefined;
  /** Called as the answer arrives. */
  onAnswer(): void;
}

/** A token of the service's own, which somebody may take back. */
export interface Issued {
  readonly token: string;
  /** The service accepts it no longer. */
  end(): void;
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
}

type Body = string | null | undefined;
type DispatchOptions = Parameters<CallPool['dispatch']>[0];
type Handler = Parameters<CallPool['dispatch']>[1];

const ORIGIN = 'http://service.sim';

/** The REST service: the sandbox itself, on simulated time, behind a network that loses and delays. */
export class Service {
  readonly #sim: Simulation;
  readonly #network: Network;
  readonly #chance: Chance;
  readonly process: Process;
  readonly made: Made;
  calls: CallFaults = NO_CALL_FAULTS;
  webhooks: WebhookFaults = { lost: 0, lostAnswer: 0, twice: 0, late: 0 };
  /** Whether a fault that was drawn may strike. */
  mayFail: (kind: string, where: string) => boolean = () => false;
  readonly acknowledged: Acknowledged[] = [];
  served = 0;
  #strange: Answer | undefined;
  /** How long an answer takes beside the network, in milliseconds. */
  slownessMs = 0;
  /** Names the process that answers at an address. */
  processAt: (url: string) => string = (url) => url;
  /** How often each message has left. */
  readonly sent = new Map<string, number>();
  /** When each message first left, in simulated ms. */
  readonly sentAt = new Map<string, number>();
  /** The client that each message is of. */
  readonly clientOf = new Map<string, string>();
  /** Payments that processes have sent and whose end they do not know, by process. */
  readonly underWay = new Map<Process, Map<symbol, string>>();
  /** Payments by their texts, whose success was told to a process as the service said it. */
  readonly told = new Map<Process, Set<string>>();
  /** Told of each payment that leaves a process: its text, and how often it has left before. */
  onPayment: (process: Process, body: string, before: LeftBefore) => void = () => {};
  closing: Closing | undefined;
  /** Told of each process that was told of a payment's success. */
  onTold: (process: Process) => void = () => {};
  /** Told of each process that sends a payment. */
  onLeaving: (process: Process) => void = () => {};
  /** How often each text of a payment has left, and each idempotency key with it. */
  readonly #left = new Map<string, number>();
  /** What calls carry with a token that was taken back. */
  readonly #ended = new Set<string>();
  /** The last success of each kind of payment, by its path. */
  readonly #answers = new Map<string, Answer>();

  private constructor(sim: Simulation, network: Network, made: Made, process: Process) {
    this.#sim = sim;
    this.#network = network;
    this.#chance = sim.chance('service');
    this.process = process;
    this.made = made;
  }

  /** @param gateway an address of a gateway, asked for each webhook; undefined while there is none */
  static async start(sim: Simulation, network: Network, gateway: () => string): Promise<Service> {
    const process = new Process(sim, 'service');
    let service: Service | undefined;
    const agent = {
      request: (request: WebhookRequest) => {
        if (service === undefined) throw new Error('the service has not started');
        return service.#deliver(request, gateway);
      },
      destroy: async () => {},
      // The sandbox asks for no more of it.
    } as unknown as NonNullable<Parameters<typeof makeSandbox>[1]>;
    const options = { speed: 1, seed: 1, hosts: ['service.sim'], webhookHosts: ['gateway.sim'] };
    const made = await process.run(() => makeSandbox(options, agent));
    service = new Service(sim, network, made, process);
    made.world.origin = ORIGIN;
    process.run(() => made.world.clock.start());
    return service;
  }

  /** Issues one more token for a client, as for a second app of its. */
  issue = (clientId: string): Promise<Issued> =>
    this.process.run(async () => {
      const { world } = this.made;
      const client = world.state.clients.get(clientId);
      if (client === undefined) throw new Error(`the sandbox has no client ${clientId}`);
      const { token } = await issueToken(world, client, activeCredential(client));
      return { token, end: () => void this.#ended.add(`Bearer ${token}`) };
    });

  /** The pool of connections that a gateway is given. */
  openPool = (): CallPool => ({
    dispatch: (options, handler) => {
      this.#dispatch(options, handler);
      return true;
    },
    destroy: async () => {},
  });

  /** Nothing happens by itself in the service any more, and it tells nobody of anything. */
  standStill(): void {
    this.process.run(() => this.made.world.clock.setSpeed(0));
  }

  #draws(probability: number, kind: string, where: string): boolean {
    return probability > 0 && this.#chance.happens(probability) && this.mayFail(kind, where);
  }

  #dispatch(options: DispatchOptions, handler: Handler): void {
    const caller = currentProcess();
    const { method, path } = options;
    const where = `${method} ${path.split('?', 1)[0]}`;
    const { calls } = this;
    let isOver = false;
    let end: (isDone: boolean) => void = () => {};
    const controller = {
      abort: (reason: Error) => {
        if (isOver) return;
        isOver = true;
        end(false);
        handler.onResponseError?.(controller as never, reason);
      },
    };
    const tell = (ms: number, work: () => void): void =>
      void this.#sim.after(ms, caller, () => {
        if (isOver || this.#network.isCut(caller, this.process)) return;
        work();
      });
    const fail = (ms: number, code: string): void =>
      tell(ms, () => {
        isOver = true;
        end(false);
        handler.onResponseError?.(controller as never, Object.assign(new Error(code), { code }));
      });
    if (this.#draws(calls.refused, 'refused connection', where)) {
      fail(this.#latency(), 'ECONNREFUSED');
      return;
    }
    tell(this.#latency(), () => {
      try {
        handler.onRequestStart?.(controller as never, undefined);
      } catch (error) {
        // As undici does: nothing is sent for a handler that throws.
        controller.abort(error as Error);
      }
      if (isOver) return;
      end = this.#follow(caller, options);
      if (this.#draws(calls.lostRequest, 'lost request', where)) {
        fail(this.#latency(), 'ECONNRESET');
        return;
      }
      if (this.#draws(calls.silence, 'silence', where)) return;
      const late = this.#draws(calls.lateRequest, 'late request', where)
        ? this.#chance.between(1_000, 20_000)
        : 0;
      this.#sim.after(late + this.#latency(), this.process, () => {
        if (this.#network.isCut(caller, this.process)) return;
        const closing = this.#closingOf(caller, options);
        const served = closing === undefined ? this.#serve(options, where) : this.#close(options, where);
        void served.then((answer) => {
          if (closing === undefined && this.#draws(calls.lostAnswer, 'lost answer', where)) {
            fail(this.#latency(), 'ECONNRESET');
            return;
          }
          const slow = this.#draws(calls.lateAnswer, 'late answer', where)
            ? this.#chance.between(1_000, 20_000)
            : 0;
          tell(slow + this.slownessMs + this.#latency(), () => {
            isOver = true;
            end('isSaid' in answer && answer.status < 300);
            closing?.onAnswer();
            handler.onResponseStart?.(controller as never, answer.status, answer.headers, '');
            handler.onResponseData?.(controller as never, Buffer.from(answer.text));
            handler.onResponseEnd?.(controller as never, {});
          });
        });
      });
    });
  }

  #latency(): number {
    return this.#chance.between(1, 30);
  }

  async #serve(options: DispatchOptions, where: string) {
    const { calls } = this;
    if (this.#draws(calls.error / 2, 'error before the work', where)) return this.#failure();
    const isKeyed = options.method === 'GET' || keyIn(options) !== undefined;
    const strange = options.method === 'GET' ? undefined : this.#strangeAnswer(where);
    if (strange !== undefined && this.#chance.happens(0.5)) return strange;
    const answer = await this.#ask(options);
    if (strange !== undefined) return strange;
    if (isKeyed && this.#draws(calls.twice, 'twice', where)) await this.#ask(options);
    if (this.#draws(calls.error / 2, 'error after the work', where)) return this.#failure();
    if (this.#draws(calls.truncated, 'truncated answer', where))
      return { ...answer, text: answer.text.slice(0, answer.text.length >> 1) };
    if (this.#draws(calls.wrongShape, 'wrong shape', where))
      return { ...answer, text: this.#chance.pick(['{}', '[]', 'null', '{"data":null}', '"ok"']) };
    const body = String(options.body ?? '');
    if (!isPayment(body)) return answer;
    const other = this.#answers.get(options.path);
    if (answer.status < 300) this.#answers.set(options.path, answer);
    // Two orders of one amount nobody could tell apart by their answers while the record is away.
    const text = other?.text.replaceAll('1.00', '2.00');
    const isOther = other !== undefined && text !== undefined && text !== other.text;
    if (isOther && this.#draws(calls.mixed, 'answer to another', where)) return { ...other, text };
    return { ...answer, isSaid: true };
  }

  /** Takes the order to close the next payment of a process, where this is one that can be closed. */
  #closingOf(caller: Process | undefined, { method, body }: DispatchOptions): Closing | undefined {
    const text = String(body ?? '');
    const { closing } = this;
    const isMeant = closing !== undefined && closing.process === caller && method === 'POST';
    if (!isMeant || !isPayment(text) || !text.includes('"1.00"')) return undefined;
    this.closing = undefined;
    return closing;
  }

  /**
   * Answers a payment so that it is closed: money out by a conflict, which another request with its key may have, before or after the
   * work; all else by what is no answer to it.
   */
  async #close(options: DispatchOptions, where: string): Promise<Answer> {
    const isKeyed = keyIn(options) !== undefined;
    this.mayFail('closing answer', where);
    const conflict: Answer = {
      status: 409,
      headers: { 'content-type': 'text/plain' },
      text: '<html>busy</html>',
    };
    if (isKeyed && this.#chance.happens(0.5)) return conflict;
    const answer = await this.#ask(options);
    return isKeyed ? conflict : { ...answer, text: answer.text.replaceAll('1.00', '2.00') };
  }

  /** Notes a payment that leaves a process. @returns notes its end, and whether that was the service's own word of success */
  #follow(process: Process | undefined, options: DispatchOptions): (isDone: boolean) => void {
    const { method, body } = options;
    const text = String(body ?? '');
    if (process === undefined || method !== 'POST' || !isPayment(text)) return () => {};
    const open = this.underWay.get(process) ?? new Map<symbol, string>();
    this.underWay.set(process, open);
    const own = Symbol(text);
    open.set(own, text);
    const key = keyIn(options);
    const withKey = key === undefined ? undefined : this.#leaves(`${key} ${text}`);
    this.onPayment(process, text, { withText: this.#leaves(text), withKey });
    this.onLeaving(process);
    return (isDone) => {
      open.delete(own);
      if (!isDone) return;
      this.told.set(process, (this.told.get(process) ?? new Set()).add(text));
      this.onTold(process);
    };
  }

  /** Notes that it leaves. @returns how often it has left before */
  #leaves(what: string): number {
    const before = this.#left.get(what) ?? 0;
    this.#left.set(what, before + 1);
    return before;
  }

  /** What proxies say who know nothing of the service. What one has said, it mostly says again. */
  #strangeAnswer(where: string) {
    const isAgain = this.#strange !== undefined && this.#chance.happens(0.6);
    if (!isAgain && !this.#draws(this.calls.stranger, 'answer of a stranger', where)) return undefined;
    if (isAgain && !this.mayFail('answer of a stranger', where)) return undefined;
    if (!isAgain) {
      const status = this.#chance.pick([400, 403, 404, 405, 409, 413, 422]);
      const text = this.#chance.pick([
        '<html>not here</html>',
        `{"error":"refused","status":${status}}`,
        `{"code":${status},"message":"No.","details":[{"reason":"blocked","domain":"edge"}]}`,
      ]);
      this.#strange = { status, headers: { 'content-type': 'text/plain' }, text };
    }
    const said = this.#strange;
    if (isAgain && this.#chance.happens(0.5)) this.#strange = undefined;
    return said;
  }

  #failure() {
    const status = this.#chance.pick([500, 502, 503, 504]);
    return { status, headers: { 'content-type': 'text/html' }, text: '<html>failed</html>' };
  }

  async #ask({ method, path, headers, body }: DispatchOptions) {
    this.served += 1;
    const sent = new Headers(headers as Record<string, string>);
    sent.set('host', 'service.sim');
    if (this.#ended.has(sent.get('authorization') ?? '')) sent.delete('authorization');
    const response = await this.made.app.fetch(
      new Request(ORIGIN + path, {
        method,
        headers: sent,
        // The gateway sends texts.
        body: (body as Body) ?? null,
      }),
    );
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      text: await response.text(),
    };
  }

  async #deliver({ path, headers, body, signal }: WebhookRequest, gateway: () => string) {
    const [, type = ''] = /\/(MONEY_IN|STATUS_UPDATE|CEP)/i.exec(path) ?? [];
    const { webhooks } = this;
    const send = () => {
      const url = gateway();
      const fetched = this.#network.fetch(url + path, { method: 'POST', headers, body, signal });
      return this.#note(fetched, body, type, path, this.processAt(url));
    };
    if (this.#draws(webhooks.lost, 'lost webhook', type)) throw new Error('ECONNRESET');
    if (this.#draws(webhooks.late, 'late webhook', type))
      await new Promise<void>((resolve) =>
        this.#sim.after(this.#chance.between(100, 9_000), this.process, resolve),
      );
    if (this.#draws(webhooks.twice, 'webhook twice', type)) void send().catch(() => {});
    const reply = await send();
    if (this.#draws(webhooks.lostAnswer, 'lost webhook answer', type)) throw new Error('ECONNRESET');
    return { statusCode: reply.status, body: [Buffer.from(reply.text)] };
  }

  async #note(fetched: Promise<Response>, body: string, type: string, path: string, to: string) {
    const sentAt = this.#sim.elapsed;
    // A receipt is wrapped, other messages are bare.
    const message = JSON.parse(body) as {
      readonly id_msg?: string;
      readonly payload?: { readonly id_msg?: string };
    };
    const idMsg = message.id_msg ?? message.payload?.id_msg;
    const clientId = /[0-9a-f-]{36}/.exec(path)?.[0] ?? '';
    if (idMsg !== undefined) {
      this.clientOf.set(idMsg, clientId);
      this.sent.set(idMsg, (this.sent.get(idMsg) ?? 0) + 1);
      this.sentAt.set(idMsg, this.sentAt.get(idMsg) ?? sentAt);
    }
    const response = await fetched;
    const text = await response.text();
    if (response.status === 201 && typeof idMsg === 'string')
      this.acknowledged.push({ clientId, idMsg, type, at: this.#sim.elapsed, sentAt, to });
    return { status: response.status, text };
  }
}

/** The key by which the service knows a request again; undefined without one. */
const keyIn = ({ headers }: DispatchOptions): string | undefined =>
  Object.entries(headers as Record<string, string>).find(
    ([name]) => name.toLowerCase() === 'idempotency-key',
  )?.[1];

/** Whether a text orders a movement of money. */
const isPayment = (text: string): boolean => /"(?:description|refundReason)":/.test(text);

interface WebhookRequest {
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly signal: AbortSignal;
}
