import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientView } from '../../packages/sandbox/src/control-views.ts';
import { ALL_SCOPES } from '../helpers/all-scopes.ts';
import type { Chance } from './chance.ts';
import type { Simulation } from './core.ts';
import type { Issued } from './service.ts';

/** How the gateways of a run know their callers. */
export type Mode = 'passthrough' | 'service';

/** Somebody who may ask. */
export interface Caller {
  readonly name: string;
  readonly client: ClientView;
  /** Undefined for one who acts for the whole client. */
  readonly customerId: string | undefined;
  /** A token that holds for a while from now on, mostly one that it has used. */
  token(): string;
  /** One that no gateway has seen, where callers have tokens of their own. */
  freshToken(): string;
}

const ISSUER = 'https://id.sim';
const AUDIENCE = 'pasarela';
const SECRET = 'the identity provider of the simulation signs with this';
const CLIENT_CLAIM = 'merchant';

/** When a token ends, by its claims, in ms since the epoch. */
export function endOf(token: string): number {
  const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  return Number(exp) * 1_000;
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function signed(claims: Readonly<Record<string, unknown>>, secret = SECRET): string {
  const text = `${encoded({ alg: 'HS256' })}.${encoded(claims)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** Everybody who calls in one run. */
export class Callers {
  readonly mode: Mode;
  readonly all: readonly Caller[];
  /** What the gateways are told of them. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #sim: Simulation;
  readonly #chance: Chance;
  /** How long a token holds, in seconds. */
  readonly #lifeSeconds: number;
  readonly #issue: (clientId: string) => Promise<Issued>;

  constructor(
    sim: Simulation,
    mode: Mode,
    clients: readonly ClientView[],
    work: string,
    lifeSeconds: number,
    issue: (clientId: string) => Promise<Issued>,
  ) {
    this.#sim = sim;
    this.#issue = issue;
    this.mode = mode;
    this.#chance = sim.chance('tokens');
    this.#lifeSeconds = lifeSeconds;
    if (mode === 'passthrough') {
      this.environment = {};
      this.all = clients.map((client) => ({
        name: client.name,
        client,
        customerId: undefined,
        token: () => client.accessToken,
        freshToken: () => client.accessToken,
      }));
      return;
    }
    const file = join(work, 'clients.json');
    const known = clients.map(({ clientId, clientSecret, apiKey }) => ({ clientId, clientSecret, apiKey }));
    writeFileSync(file, JSON.stringify(known), { mode: 0o600 });
    this.environment = {
      AUTH_MODE: 'service',
      UPSTREAM_CLIENTS: file,
      AUTH_CLIENT_CLAIM: CLIENT_CLAIM,
      AUTH_JWT_SECRET: SECRET,
      AUTH_ISSUER: ISSUER,
      AUTH_AUDIENCE: AUDIENCE,
    };
    this.all = clients.flatMap((client) => [
      this.#caller(client, 'ana', undefined),
      this.#caller(client, 'beto', undefined),
      ...client.customerIds.slice(0, 2).map((id, index) => this.#caller(client, `customer-${index}`, id)),
    ]);
  }

  /** Those who see all of their client; the demo client's first. */
  get whole(): readonly Caller[] {
    return this.all.filter(({ customerId }) => customerId === undefined);
  }

  /** A token that no gateway may accept. */
  stranger(): { readonly token: string; readonly what: string } {
    const [first] = this.all;
    const now = Math.floor(this.#sim.now / 1000);
    if (this.mode === 'passthrough' || first === undefined) {
      const [head = '', , signature = ''] = first?.token().split('.') ?? [];
      const body = encoded({ client_id: first?.client.clientId, exp: now + 600, nonce: this.#chance.uuid() });
      return { token: `${head}.${body}.${signature}`, what: 'made up' };
    }
    const good = this.#claims(first.client, 'ana', first.customerId);
    const bad: readonly (readonly [what: string, claims: Record<string, unknown>, secret?: string])[] = [
      ['for another audience', { ...good, aud: 'another' }],
      ['of another issuer', { ...good, iss: 'https://other.sim' }],
      ['that has ended', { ...good, exp: now - 30 }],
      ['without an end', { ...good, exp: undefined }],
      ['not yet valid', { ...good, nbf: now + 3_600 }],
      ['of a client that is not served', { ...good, [CLIENT_CLAIM]: this.#chance.uuid() }],
      ['of a list of clients', { ...good, [CLIENT_CLAIM]: [first.client.clientId] }],
      ['of no client', { ...good, [CLIENT_CLAIM]: undefined }],
      ['of a customer that is none', { ...good, customer_id: '' }],
      ['signed by another', good, 'another secret, as long as the one that is known'],
    ];
    const [what, claims, secret] = this.#chance.pick(bad);
    return { token: signed({ ...claims, jti: this.#chance.uuid() }, secret), what };
  }

  /** A token that the service can take back from one who holds it; undefined where callers have tokens of an identity provider. */
  issue({ client: { clientId } }: Caller): Promise<Issued> | undefined {
    return this.mode === 'passthrough' ? this.#issue(clientId) : undefined;
  }

  #caller(client: ClientView, sub: string, customerId: string | undefined): Caller {
    return {
      name: `${sub} of ${client.name}`,
      client,
      customerId,
      token: () => signed(this.#claims(client, sub, customerId)),
      freshToken: () => signed({ ...this.#claims(client, sub, customerId), jti: this.#chance.uuid() }),
    };
  }

  #claims(client: ClientView, sub: string, customerId: string | undefined) {
    // The same within a while, so that several calls come under one credential.
    const from = Math.floor(this.#sim.now / 1000 / this.#lifeSeconds) * this.#lifeSeconds;
    return {
      sub,
      iss: ISSUER,
      aud: (from / this.#lifeSeconds) % 2 === 0 ? AUDIENCE : ['another', AUDIENCE],
      scope: ALL_SCOPES,
      [CLIENT_CLAIM]: client.clientId,
      ...(customerId === undefined ? {} : { customer_id: customerId }),
      exp: from + 2 * this.#lifeSeconds,
    };
  }
}
