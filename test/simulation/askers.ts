import { App, type AppWorld } from './apps.ts';
import { type Caller, type Callers, endOf } from './callers.ts';
import type { Chance } from './chance.ts';
import { Broken, type Process } from './core.ts';
import { type Question, questionFor } from './questions.ts';
import { ask, codesOf, type Told, WAYS } from './raw.ts';
import type { Truth } from './truth.ts';

/** What may be wrong with a read for a while, and is no fault of who asks. */
const EXCUSES = new Set([
  'UPSTREAM_UNAVAILABLE',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_INVALID',
  'UPSTREAM_RATE_LIMITED',
  'RATE_LIMITED',
  'STORE_UNAVAILABLE',
  'DRAINING',
]);

/** What only the service knows, and nobody keeps for whoever brings a token of its. */
const OF_SERVICE = /\b(?:account|customer|customers|nodes|transaction)\(/;
/** How long after a token was taken back its holder asks, in milliseconds: longer than a read that is under way is joined, and up to where a
 * gateway has forgotten the token. */
const ENDED_MS = [1_100, 40_000] as const;
/** How many times two then ask, within how many milliseconds. */
const TOGETHER = 4;
const TOGETHER_MS = 100;

/** No operation takes longer than its deadline. */
const PATIENCE_MS = 40_000;

/** Asks what is known, in every way, often twice at once, and sometimes leaves; and never believes an answer. */
export class Asker extends App {
  readonly #chance: Chance;
  readonly #truth: Truth;
  readonly #callers: Callers;
  /** Whether nothing has gone wrong for long enough that every question has to be answered. */
  readonly #isCalm: () => boolean;
  answered = 0;

  constructor(
    world: AppWorld,
    name: string,
    caller: Caller,
    truth: Truth,
    callers: Callers,
    isCalm: () => boolean,
  ) {
    super(world, name, caller);
    this.#chance = world.sim.chance(name);
    this.#truth = truth;
    this.#callers = callers;
    this.#isCalm = isCalm;
  }

  protected live(process: Process): void {
    const next = (): void => {
      this.world.sim.after(this.#chance.between(500, 12_000) * this.world.pace, process, () => {
        next();
        if (this.#chance.happens(0.1)) this.#asStranger();
        else this.#askSome();
        if (this.#chance.happens(0.25)) void this.#askAfterTheEnd(process);
      });
    };
    next();
  }

  /** The same question, once or several times at once, as several fields of a page ask it; sometimes another asks it at that moment. */
  #askSome(): void {
    const { caller } = this;
    const url = this.world.url();
    const choice = `${this.name} ${this.#chance.number()}`;
    const copies = this.#chance.pick([1, 1, 2, 3]);
    this.#askAs(caller, url, choice, copies);
    if (this.#chance.happens(0.4)) this.#askAs(this.#chance.pick(this.#callers.all), url, choice, 1);
  }

  /**
   * Somebody whose token the service has taken back, while the gateway still knows whose it was, asks what a colleague asks at that moment:
   * and is shown nothing that only the service knows.
   */
  async #askAfterTheEnd(process: Process): Promise<void> {
    const { caller, world } = this;
    const { sim } = world;
    const issued = await this.#callers.issue(caller);
    if (issued === undefined) return;
    const url = world.url();
    const choice = `${this.name} ${this.#chance.number()}`;
    const question = questionFor(caller, sim.chance(choice), this.#truth, this.#callers);
    const asAtFirst = (): Promise<Told> =>
      ask(world, url, issued.token, question, {
        way: this.#chance.pick(WAYS),
        signal: AbortSignal.any([]),
      });
    const hear = ({ data, errors = [] }: Told): void => {
      if (
        OF_SERVICE.test(question.query) &&
        errors.length === 0 &&
        Object.values(data ?? {}).some((one) => one !== null)
      )
        this.#broken(
          caller,
          `is shown ${JSON.stringify(data)} under a token that the service has taken back`,
        );
    };
    sim.after(0, process, () => asAtFirst().catch(() => undefined));
    const endsIn = this.#chance.between(500, 5_000);
    sim.after(endsIn, undefined, issued.end);
    const comesIn = endsIn + this.#chance.between(...ENDED_MS);
    for (let left = TOGETHER; left > 0; left -= 1) {
      const at = comesIn + this.#chance.between(0, TOGETHER_MS);
      sim.after(at, process, () => this.#askAs(caller, url, choice, 1));
      sim.after(at + this.#chance.between(0, TOGETHER_MS), process, () =>
        asAtFirst().then(hear, () => undefined),
      );
    }
  }

  /** @param choice what the question is drawn by */
  #askAs(caller: Caller, url: string, choice: string, copies: number): void {
    const question = questionFor(caller, this.world.sim.chance(choice), this.#truth, this.#callers);
    const token = this.#chance.happens(0.3) ? caller.freshToken() : caller.token();
    for (let left = copies; left > 0; left -= 1) {
      const leaving = new AbortController();
      const isLeaving = this.#chance.happens(0.25);
      const wasCalm = this.#isCalm();
      const { process } = this;
      this.world.sim.after(isLeaving ? this.#chance.between(0, 200) : PATIENCE_MS, this.process, () =>
        leaving.abort(),
      );
      ask(this.world, url, token, question, { way: this.#chance.pick(WAYS), signal: leaving.signal }).then(
        (told) => this.#hear(caller, question, told, wasCalm, endOf(token)),
        (error: unknown) => {
          if (process?.isAlive === false) return;
          if (wasCalm && !leaving.signal.aborted)
            this.#broken(caller, `got no answer to ${question.query}: ${String(error)}`);
          else if (wasCalm && !isLeaving) this.#broken(caller, `waits for an answer to ${question.query}`);
        },
      );
    }
  }

  /** @param endsAt when the token ends, in ms since the epoch: a request may be on its way for longer */
  #hear(caller: Caller, question: Question, told: Told, wasCalm: boolean, endsAt: number): void {
    this.answered += 1;
    const leak = this.#truth.leakIn(caller, question, told);
    if (leak !== undefined) this.#broken(caller, `is shown ${leak} by ${question.query}`);
    const { data, errors = [] } = told;
    const hasEnded = this.world.sim.now >= endsAt;
    const codes = codesOf(told).filter((code) => !(hasEnded && code === 'UNAUTHENTICATED'));
    const odd = codes.find((code) => !EXCUSES.has(code));
    if (odd !== undefined || (wasCalm && codes.length > 0))
      this.#broken(caller, `is told ${codes.join(', ')} (${errors[0]?.message}) of ${question.query}`);
    if (errors.length > 0) return;
    const wrong = data == null ? 'no data' : question.wrong(data);
    if (wrong !== undefined)
      this.#broken(
        caller,
        `is told by ${question.query} of ${JSON.stringify(question.variables)}: ${JSON.stringify(data).slice(0, 300)}, ${wrong}`,
      );
  }

  #asStranger(): void {
    const { token, what } = this.#callers.stranger();
    const way = this.#chance.pick(WAYS);
    ask(
      this.world,
      this.world.url(),
      token,
      { query: '{ client { id } }' },
      { way, signal: AbortSignal.any([]) },
    ).then(
      (told) => {
        if (told.data != null && 'client' in told.data && told.data['client'] !== null)
          this.#broken(this.caller, `is answered under a token ${what}`);
      },
      () => undefined,
    );
  }

  #broken(caller: Caller, what: string): void {
    this.world.sim.fail(new Broken(`${this.name} (${caller.name}) ${what}`));
  }
}
