// Loaded while time stands still: what the gateway imports when it needs it would else come after a real while.
import '../../src/events/redis/redis-log.ts';
import '../../src/money/redis/redis-record.ts';
import '../../src/auth/shared-token-store.ts';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { readVariables } from '../../src/app/config.ts';
import { configure } from '../../src/app/configure.ts';
import { buildServer, type Gateway } from '../../src/app/gateway.ts';
import type { Gap } from '../../src/events/errors.ts';
import { openSpool } from '../../src/events/spool/spool-files.ts';
import type { Mark } from '../../src/money/mark.ts';
import { MARKS, RedisMarks } from '../../src/money/redis/marks.ts';
import { databaseAt } from './ambient.ts';
import { Broken, Process, type Simulation } from './core.ts';

const SECRET = 'a-secret-of-the-simulation';

/** One gateway of the fleet: a folder and an address that stay, and a process that comes and goes. */
export class GatewayPlace {
  readonly url: string;
  readonly #sim: Simulation;
  readonly #name: string;
  readonly dataDir: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #skewMs: number;
  #starts = 0;
  process: Process | undefined;
  gateway: Gateway | undefined;
  /** Whether it listens. */
  isUp = false;
  /** Told of a process that has ended as it was told to, before it is gone. */
  onEnded: (process: Process) => void = () => {};
  /** Whether the process that runs here has said that it ends before an answer could be stored. */
  hasGivenUp = false;
  /** Told of what its log says of a gap. */
  onGap: (gap: Gap) => void = () => {};

  constructor(
    sim: Simulation,
    work: string,
    number: number,
    environment: Readonly<Record<string, string>>,
    skewMs: number,
  ) {
    this.#sim = sim;
    this.#name = `gateway ${number}`;
    this.url = `http://gateway-${number}.sim:4000`;
    this.dataDir = join(work, `gateway-${number}`);
    mkdirSync(this.dataDir, { recursive: true });
    this.#environment = environment;
    this.#skewMs = skewMs;
  }

  /** Names the process that runs here now. */
  get processName(): string {
    return `${this.#name}, start ${this.#starts}`;
  }

  /** How many processes have run here. */
  get starts(): number {
    return this.#starts;
  }

  get name(): string {
    return this.#name;
  }

  start(): void {
    if (this.process?.isAlive === true) return;
    this.#starts += 1;
    const process = new Process(this.#sim, this.#name, this.#skewMs);
    this.process = process;
    this.hasGivenUp = false;
    process.atEnd(() => {
      if (this.process === process) this.isUp = false;
    });
    const at = (level: string) => (fields: object, message: string) => {
      if (!process.isAlive) return;
      const text = JSON.stringify(fields, (_, value: unknown) =>
        value instanceof Error ? value.stack : value,
      );
      this.#sim.say(`${this.#name} ${level}: ${message} ${text.slice(0, 200)}`);
      if (message.startsWith('stopped before')) this.hasGivenUp = true;
      // The line has these fields.
      if (message === 'readers are told that events are missing') this.onGap(fields as Gap);
      if (message.includes('unexpectedly')) this.#sim.fail(new Broken(`${this.#name}: ${message} ${text}`));
    };
    const logger = { debug() {}, info: at('info'), warn: at('warn'), error: at('error') };
    process.run(() => {
      const variables = readVariables({
        UPSTREAM_URL: 'http://service.sim',
        DATA_DIR: this.dataDir,
        PUBLIC_URL: 'http://gateway.sim',
        WEBHOOK_SECRET: SECRET,
        LOG_LEVEL: 'error',
        ...this.#environment,
      });
      const gateway = buildServer(
        { ...configure(variables, 'http://service.sim'), host: this.url, port: 4000 },
        logger,
      );
      this.gateway = gateway;
      gateway.start().then(
        () => {
          if (!process.isAlive) return;
          this.isUp = true;
          this.#sim.say(`${this.#name} is up (start ${this.#starts})`);
        },
        (error: unknown) => process.isAlive && this.#sim.fail(error),
      );
    });
  }

  /** Its process is killed, and the next one starts while another of this folder still has the first spool. @returns that other one */
  startBesideAnother(): Process {
    this.kill();
    const other = new Process(this.#sim, `${this.#name}, one before`);
    other.run(() => openSpool(this.dataDir));
    this.start();
    return other;
  }

  kill(): void {
    this.process?.kill();
    this.isUp = false;
  }

  /** The events of a client in this gateway's own log, each with its position; none where it keeps none. */
  embeddedLog(clientId: string): readonly (readonly [position: string, event: string])[] {
    const rows = databaseAt(join(this.dataDir, 'events.sqlite'))
      ?.prepare('SELECT position, event FROM events WHERE client = ? ORDER BY position')
      .all(clientId);
    return (rows ?? []).map(({ position, event }) => [String(position), String(event)]);
  }

  /** Texts of the payments that this gateway's own record has as sent, and without an end; none where it keeps none. */
  embeddedSent(): readonly string[] {
    const path = join(this.dataDir, 'money.sqlite');
    if (!existsSync(path)) return [];
    using database = new DatabaseSync(path, { readOnly: true });
    const rows = database.prepare("SELECT body FROM intent WHERE state = 'sent'").all();
    return rows.map(({ body }) => String(body));
  }

  /** How many payments of a client it knows to be recorded as sent in Redis. Its file has all that it knows, as its disk never fails. */
  knownOf(clientId: string): Mark {
    return new RedisMarks(join(this.dataDir, MARKS)).of(clientId);
  }

  /** Ends it as an operator does; resolves once it has ended. */
  async stop(): Promise<void> {
    const { process, gateway } = this;
    if (process === undefined || gateway === undefined || !process.isAlive) return;
    this.isUp = false;
    await process.run(() => gateway.stop());
    // Somebody may have killed it meanwhile.
    if (process.isAlive) this.onEnded(process);
    process.kill();
  }
}
