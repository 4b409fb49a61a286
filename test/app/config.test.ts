import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { ConfigError, readVariables, serviceOf } from '../../src/app/config.ts';
import { doubtsOf, weaknessesOf } from '../../src/app/config-hints.ts';
import { configure } from '../../src/app/configure.ts';
import { misspellingsIn } from '../../src/app/misspellings.ts';
import { VARIABLE_NAMES } from '../../src/app/variables.ts';
import { parseRedisUrl } from '../../src/redis/url.ts';
import { makeCertificates } from '../helpers/private-ca.ts';

const SERVICE = {
  AUTH_MODE: 'service',
  UPSTREAM_API_KEY: 'hunter2',
  UPSTREAM_CLIENT_ID: '11111111-2222-4333-8444-555555555555',
  UPSTREAM_CLIENT_SECRET: 'hunter2',
  AUTH_ISSUER: 'https://id.example.mx',
  AUTH_AUDIENCE: 'pasarela',
};

const messageOf = (environment: Record<string, string>): string => {
  try {
    readVariables(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).message;
  }
  throw new Error('The configuration was accepted.');
};

describe('the configuration', () => {
  it('needs no variable at all', () => {
    expect(readVariables({})).toMatchObject({
      PORT: 4000,
      HOST: '127.0.0.1',
      SANDBOX_PORT: 4010,
      SANDBOX_SPEED: 5,
      UPSTREAM_TOKEN_CLIENT_CLAIM: ['client_id', 'clientId', 'cid', 'sub'],
    });
  });

  it('reads the credentials of several clients from a file, and repeats nothing of it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pasarela-clients-'));
    // The service may give ids of no version of RFC 9562.
    const [one, other] = [SERVICE.UPSTREAM_CLIENT_ID, '22222222-2222-0333-0444-AAAAAAAAAAAA'];
    const of = (clientId: string) => ({ clientId, clientSecret: 'hunter2', apiKey: 'hunter3' });
    const write = async (clients: unknown) => {
      const UPSTREAM_CLIENTS = join(folder, 'clients.json');
      await writeFile(UPSTREAM_CLIENTS, typeof clients === 'string' ? clients : JSON.stringify(clients));
      const { AUTH_MODE, AUTH_ISSUER, AUTH_AUDIENCE } = SERVICE;
      const AUTH_JWKS_URL = 'https://id.example.mx/keys';
      return { AUTH_MODE, AUTH_ISSUER, AUTH_AUDIENCE, AUTH_JWKS_URL, UPSTREAM_CLIENTS };
    };
    const given = await write([of(one), of(other)]);
    const service = serviceOf(readVariables({ ...given, AUTH_CLIENT_CLAIM: 'merchant' }));
    expect(service?.clients.map(({ clientId }) => clientId)).toEqual([one, other.toLowerCase()]);
    expect(service?.clientClaim).toBe('merchant');
    expect(readVariables({ UPSTREAM_CLIENT_ID: other }).UPSTREAM_CLIENT_ID).toBe(other);
    expect(messageOf(given)).toContain('AUTH_CLIENT_CLAIM: is not set');
    expect(messageOf({ ...given, AUTH_CLIENT_CLAIM: 'm', UPSTREAM_API_KEY: 'hunter2' })).toContain(
      'UPSTREAM_CLIENTS: set, and UPSTREAM_API_KEY too',
    );
    for (const wrong of [[], [of(one), of(one)], [of('hunter2')], '{"hunter2', [{ ...of(one), more: 1 }]]) {
      const message = messageOf({ ...(await write(wrong)), AUTH_CLIENT_CLAIM: 'merchant' });
      expect(message).toContain('wants a JSON file: a list of clients');
      expect(message).not.toMatch(/hunter/);
    }
    await rm(folder, { recursive: true });
  });

  it('reads no claim that names a client without the file of clients, as tokens of any client would act for the one', () => {
    const one = { ...SERVICE, AUTH_JWT_SECRET: 'hunter2' };
    expect(serviceOf(readVariables({ ...one, AUTH_CLIENT_CLAIM: '' }))?.clientClaim).toBeUndefined();
    const message = messageOf({ ...one, AUTH_CLIENT_CLAIM: 'merchant' });
    expect(message).toContain('UPSTREAM_CLIENTS: is not set, and AUTH_CLIENT_CLAIM is; wants a JSON file');
    expect(message).not.toMatch(/hunter/);
    expect(readVariables({ AUTH_CLIENT_CLAIM: 'merchant' }).AUTH_MODE).toBe('passthrough');
  });

  it('takes an empty variable for one that is not set', () => {
    expect(readVariables({ PORT: '', REDIS_URL: '' })).toMatchObject({ PORT: 4000 });
  });

  it('names every wrong variable at once, with what it got and what it wants', () => {
    const message = messageOf({
      PORT: '70000',
      AUTH_MODE: 'magic',
      CORS_ORIGINS: 'https://a.mx/path',
      GRAPHIQL: 'yes',
    });
    expect(message).toContain('PORT: got "70000", wants a whole number from 0 to 65535.');
    expect(message).toContain('AUTH_MODE: got "magic", wants');
    expect(message).toContain('CORS_ORIGINS: got "https://a.mx/path", wants origins');
    expect(message).toContain('GRAPHIQL: got "yes", wants true or false.');
  });

  it('never repeats a secret', () => {
    const message = messageOf({ REDIS_URL: 'http://user:hunter2@host', WEBHOOK_SECRET: 'one,two,hunter2' });
    expect(message).toContain('REDIS_URL');
    expect(message).toContain('WEBHOOK_SECRET');
    expect(message).not.toContain('hunter2');
  });

  it.each([
    ['MONEY_IN_DECISION_URL', 'https://gateway:hunter2@decider.example.mx/credits'],
    ['MONEY_IN_DECISION_URL', 'https://hunter2@decider.example.mx/credits'],
    ['MONEY_IN_DECISION_URL', 'https://gateway:hunter/2@decider.example.mx/credits'],
    ['UPSTREAM_URL', 'https://:hunter2@api.example.mx'],
  ])('refuses a user and a password in %s, which nobody would send, and repeats neither', (name, url) => {
    const message = messageOf({ [name]: url });
    expect(message).toMatch(new RegExp(`^  ${name}: got a value, wants an http or https`, 'm'));
    expect(message).not.toContain('hunter');
  });

  it.each(['MONEY_IN_DECISION_URL', 'AUTH_JWKS_URL'])(
    'does not repeat %s, whose path or query may hold a secret',
    (name) => {
      const message = messageOf({ [name]: 'https//id.example.mx/hunter2?key=hunter2' });
      expect(message).toMatch(new RegExp(`^  ${name}: got a value, wants an http or https`, 'm'));
      expect(message).not.toContain('hunter2');
    },
  );

  it('refuses an address of its own that no path can be appended to, and says how one of IPv6 is written', () => {
    for (const rest of ['?tenant=1', '/?', '#top'])
      expect(messageOf({ PUBLIC_URL: `https://graph.example.mx${rest}` })).toContain(
        `PUBLIC_URL: got "https://graph.example.mx${rest}", wants an http or https address without query and fragment.`,
      );
    expect(messageOf({ PUBLIC_URL: 'graph.example.mx' })).toContain('wants an http or https address');
    expect(readVariables({ PUBLIC_URL: 'https://graph.example.mx/a/' }).PUBLIC_URL).toBe(
      'https://graph.example.mx/a',
    );
    expect(readVariables({ PUBLIC_URL: 'https://Pagos.Compañía.mx:443' }).PUBLIC_URL).toBe(
      'https://pagos.xn--compaa-7va5a.mx',
    );
    expect(messageOf({ HOST: '[::1]' })).toContain(
      'HOST: got "[::1]", wants an address of this machine, without brackets.',
    );
    expect(readVariables({ HOST: '::1' }).HOST).toBe('::1');
  });

  it('refuses to compare balances without credentials of its own, and takes how often with them', () => {
    expect(messageOf({ RECONCILE_EVERY: '3600' })).toContain(
      'RECONCILE_EVERY: is set, and AUTH_MODE is passthrough; wants AUTH_MODE=service',
    );
    const service = { ...SERVICE, AUTH_JWT_SECRET: 'hunter2' };
    const configOf = (every: object) =>
      configure(readVariables({ ...service, ...every }), 'http://127.0.0.1');
    expect(configOf({ RECONCILE_EVERY: '3600' }).reconciling).toMatchObject({ everyMs: 3_600_000 });
    expect(configOf({}).reconciling).toBeUndefined();
    expect(messageOf({ ...service, RECONCILE_EVERY: '5' })).toContain('RECONCILE_EVERY: got "5", wants');
  });

  it('says of each variable what it wants', () => {
    for (const name of VARIABLE_NAMES) {
      // What takes any text takes this too.
      try {
        readVariables({ [name]: '\u0001' });
      } catch (error) {
        expect(String(error)).toContain(name);
        expect(String(error)).not.toContain('another value');
      }
    }
  });

  it.each([
    ['redis://gateway:hunter/2@redis:6379/1', 'its user or password holds a /'],
    ['redis://gateway:hunter@2@redis:6379', 'its user or password holds a /, ?, # or @'],
    ['redis+sentinel://gateway:hunter#2@s1,s2/main', 'its user or password holds a /, ?, # or @'],
    ['redis://gateway:hunter%2@redis', 'a % is not followed by two hexadecimal digits'],
    ['redis://redis:hunter2', 'a host or port cannot be read'],
    ['redis://redis/hunter2', 'the database is not a number'],
    ['redis://one,two', 'redis:// names one host'],
    ['redis+sentinel://s1,s2', 'needs the name of the primary'],
    ['redis+cluster://:hunter2@n1/1', 'the Cluster is given one'],
    ['redis://hunter2:@', 'a host or port cannot be read'],
    ['redis+cluster://n1,,n2', 'a host'],
    ['http://hunter2', 'it has none of these forms'],
  ])('says what is wrong with the Redis address %s, and does not repeat it', (url, problem) => {
    const message = messageOf({ REDIS_URL: url });
    expect(message).toMatch(/^ {2}REDIS_URL: got a value, and .*; wants redis:\/\/\[user:password@]host/m);
    expect(message).toContain(problem);
    expect(message).not.toContain('hunter');
  });

  it('takes signs in a password of the Sentinels, and those that are written as they have to be', () => {
    for (const url of [
      'redis+sentinel://:p%2Fw@s1/main?sentinelPassword=a/b@c',
      'redis://u:%40%2F%3F%23@redis',
    ]) {
      expect(readVariables({ REDIS_URL: url }).REDIS_URL?.reveal()).toBe(url);
    }
  });

  it('wants files of TLS that hold what they should, in pairs, and for a Redis over TLS', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pasarela-tls-files-'));
    const [own, other] = [join(folder, 'own'), join(folder, 'other')];
    for (const path of [own, other]) await mkdir(path);
    const { authority, certificate, key } = await makeCertificates(own);
    const { key: strange } = await makeCertificates(other);
    const url = 'rediss://redis:6379';
    const tls = (files: Record<string, string>) => messageOf({ REDIS_URL: url, ...files });
    // None, a folder, what is no PEM, and the other file of the pair.
    for (const path of [join(folder, 'none.pem'), '/etc/ssl/certs', import.meta.filename, key]) {
      expect(tls({ REDIS_TLS_CA: path })).toContain(
        `REDIS_TLS_CA: got "${path}", wants the path of a PEM file with certificates, which this process may read.`,
      );
    }
    const swapped = tls({ REDIS_TLS_CERT: key, REDIS_TLS_KEY: certificate });
    expect(swapped).toMatch(/REDIS_TLS_CERT: got .*, wants .* with certificates/);
    expect(swapped).toMatch(/REDIS_TLS_KEY: got .*, wants .* with a private key without a passphrase/);
    expect(tls({ REDIS_TLS_CERT: certificate })).toContain('one is set without the other');
    expect(tls({ REDIS_TLS_CERT: certificate, REDIS_TLS_KEY: strange })).toContain(
      'REDIS_TLS_CERT, REDIS_TLS_KEY: the key is not that of the first certificate',
    );
    expect(messageOf({ REDIS_URL: 'redis://redis', REDIS_TLS_CA: authority })).toContain(
      'REDIS_URL uses no TLS',
    );
    const files = { REDIS_TLS_CA: authority, REDIS_TLS_CERT: certificate, REDIS_TLS_KEY: key };
    const read = readVariables({ REDIS_URL: url, ...files });
    const { tlsFiles } = parseRedisUrl(read.REDIS_URL?.reveal() ?? '');
    expect(tlsFiles).toEqual({ ca: authority, cert: certificate, key });
    await rm(folder, { recursive: true });
  });

  it('doubts times that leave none for an answer, and an address that others can read along', () => {
    const doubts = (environment: Record<string, string>) =>
      doubtsOf(readVariables({ UPSTREAM_URL: 'https://api.mx', WEBHOOK_SECRET: 'x', ...environment })).map(
        ({ text }) => text,
      );
    expect(doubts({})).toEqual([]);
    expect(doubts({ OPERATION_TIMEOUT_MS: '10000' })).toEqual([
      expect.stringContaining(
        'OPERATION_TIMEOUT_MS is 10000, and UPSTREAM_TIMEOUT_MS 10000: an operation ends',
      ),
    ]);
    expect(doubts({ OPERATION_TIMEOUT_MS: '20000' })).toEqual([
      expect.stringContaining('OPERATION_TIMEOUT_MS is 20000, and UPSTREAM_TIMEOUT_MS 10000: money out'),
    ]);
    expect(doubts({ OPERATION_TIMEOUT_MS: '20001' })).toEqual([]);
    expect(doubts({ SHUTDOWN_GRACE_MS: '29999' })).toEqual([
      expect.stringContaining('SHUTDOWN_GRACE_MS is 29999, and OPERATION_TIMEOUT_MS 30000'),
    ]);
    expect(doubts({ SHUTDOWN_GRACE_MS: '30000' })).toEqual([]);
    expect(doubts({ PUBLIC_URL: 'http://graph.example.mx' })).toEqual([
      expect.stringContaining('PUBLIC_URL is http'),
    ]);
    expect(doubts({ LAYERS_OFF: 'admission,plans' })).toEqual([
      expect.stringContaining('LAYERS_OFF leaves out admission, plans'),
    ]);
    for (const name of ['UPSTREAM_URL', 'AUTH_JWKS_URL']) {
      const service = { ...SERVICE, AUTH_JWKS_URL: 'https://id.example.mx/keys' };
      expect(doubts({ ...service, [name]: 'HTTP://host.example.mx' })).toEqual([
        expect.stringMatching(new RegExp(`^${name} is http: (?!.*example)`)),
      ]);
      for (const here of ['http://127.0.0.1:4010', 'http://[::1]:4010', 'http://localhost'])
        expect(doubts({ ...service, [name]: here })).toEqual([]);
    }
    expect(doubts({ PUBLIC_URL: 'http://127.0.0.1:4000' })).toEqual([]);
    expect(doubts({ PUBLIC_URL: 'https://graph.example.mx' })).toEqual([]);
  });

  it('doubts what files leave around a value, and variables of a mode that is not on, and repeats no secret', () => {
    const doubts = (environment: Record<string, string>) =>
      doubtsOf(readVariables({ ...environment })).map(({ text }) => text);
    const service = { ...SERVICE, AUTH_JWT_SECRET: 'hunter2' };
    expect(doubts(service)).toEqual([]);
    for (const around of ['hunter2\n', 'hunter2\r', ' hunter2', '"hunter2"', "'hunter2'"]) {
      for (const name of ['AUTH_JWT_SECRET', 'UPSTREAM_API_KEY', 'AUTH_ISSUER', 'DATA_DIR']) {
        expect(doubts({ ...service, [name]: around })).toEqual([
          expect.stringMatching(
            RegExp(
              `^${name} begins or ends with a space or a line break, or stands in quotation marks(?!.*hunter2)`,
            ),
          ),
        ]);
      }
    }
    expect(doubts({ WEBHOOK_SECRET: '"hunter2","hunter3"' })).toEqual([
      expect.stringMatching(/^WEBHOOK_SECRET begins/),
    ]);
    // What the gateway takes off by itself, and what stands within a value, is no matter.
    expect(doubts({ WEBHOOK_SECRET: 'hunter2\n', UPSTREAM_URL: 'https://api.mx\n' })).toEqual([]);
    expect(doubts({ PASARELA_TOKEN_COMMAND: '"my tool" "print it"' })).toEqual([]);
    const { AUTH_MODE: _service, ...others } = service;
    expect(doubts(others)).toEqual([
      expect.stringMatching(
        /^AUTH_MODE is passthrough, and these are set, which it does not read: .*AUTH_JWT_SECRET, AUTH_ISSUER, AUTH_AUDIENCE\.(?!.*hunter2)/,
      ),
    ]);
  });

  it('wants a webhook secret beside an upstream of one’s own', () => {
    expect(messageOf({ UPSTREAM_URL: 'https://api.example.mx' })).toContain('WEBHOOK_SECRET');
    const read = readVariables({ UPSTREAM_URL: 'https://api.example.mx', WEBHOOK_SECRET: 'new,old' });
    expect(read.UPSTREAM_URL).toBe('https://api.example.mx');
    expect(read.WEBHOOK_SECRET?.map((secret) => secret.reveal())).toEqual(['new', 'old']);
  });

  it('names everything that service mode needs', () => {
    const message = messageOf({ AUTH_MODE: 'service' });
    for (const name of [
      ...['UPSTREAM_API_KEY', 'UPSTREAM_CLIENT_ID', 'UPSTREAM_CLIENT_SECRET'],
      ...['AUTH_ISSUER', 'AUTH_AUDIENCE', 'AUTH_JWKS_URL, AUTH_JWT_SECRET: neither is set'],
    ]) {
      expect(message).toContain(name);
    }
  });

  it('wants one way to verify callers’ tokens, not two', () => {
    const message = messageOf({
      ...SERVICE,
      AUTH_JWKS_URL: 'https://id.example.mx/keys',
      AUTH_JWT_SECRET: 'hunter2',
    });
    expect(message).toContain('AUTH_JWKS_URL, AUTH_JWT_SECRET: both are set; wants one');
    expect(message).not.toContain('hunter2');
  });

  it('holds secrets that do not print', () => {
    const read = readVariables({
      ...SERVICE,
      AUTH_JWT_SECRET: 'hunter2',
      REDIS_URL: 'redis://:hunter2@127.0.0.1',
      WEBHOOK_SECRET: 'hunter2',
    });
    expect(JSON.stringify(read) + inspect(read, { depth: 9 }) + String(read.REDIS_URL)).not.toContain(
      'hunter2',
    );
    expect(serviceOf(read)).toMatchObject({ issuer: 'https://id.example.mx', audience: 'pasarela' });
    expect(serviceOf(readVariables({}))).toBeUndefined();
  });

  it('calls keys of an HMAC weak that are shorter than its hash, and repeats none', () => {
    const long = 'x'.repeat(32);
    const weak = (environment: Record<string, string>) => weaknessesOf(readVariables(environment));
    expect(weak({})).toEqual([]);
    expect(weak({ ...SERVICE, WEBHOOK_SECRET: `${long},${long}`, AUTH_JWT_SECRET: long })).toEqual([]);
    expect(weak({ WEBHOOK_SECRET: `${long},hunter2` })).toEqual([
      expect.stringMatching(
        /^WEBHOOK_SECRET is shorter than 32 bytes: who has seen one address(?!.*hunter2)/,
      ),
    ]);
    expect(weak({ ...SERVICE, AUTH_JWT_SECRET: 'á'.repeat(15) })).toEqual([
      expect.stringMatching(/^AUTH_JWT_SECRET is shorter than 32 bytes: who has seen one token/),
    ]);
    expect(weak({ ...SERVICE, AUTH_JWT_SECRET: 'á'.repeat(16) })).toEqual([]);
    expect(weak({ FORWARD_SECRET: 'hunter2' })).toEqual([
      expect.stringMatching(
        /^FORWARD_SECRET is shorter than 32 bytes: who has seen one forwarded event(?!.*hunter2)/,
      ),
    ]);
  });

  it('wants a Redis where processes share a port', () => {
    expect(messageOf({ REUSE_PORT: 'true' })).toContain('REDIS_URL: is not set, and REUSE_PORT is true');
    expect(readVariables({ REUSE_PORT: 'true', REDIS_URL: 'redis://127.0.0.1' })).toMatchObject({
      REUSE_PORT: true,
    });
  });

  it('wants a Redis, and no empty value, where it is told that several processes need one', () => {
    const problem = 'REDIS_URL: is not set, or empty, and NEEDS_REDIS is true';
    expect(messageOf({ NEEDS_REDIS: 'true' })).toContain(problem);
    expect(messageOf({ NEEDS_REDIS: 'true', REUSE_PORT: 'true', REDIS_URL: '' })).toContain(problem);
    expect(readVariables({ NEEDS_REDIS: 'true', REDIS_URL: 'redis://127.0.0.1' })).toMatchObject({
      NEEDS_REDIS: true,
    });
    expect(readVariables({ NEEDS_REDIS: 'false' })).toMatchObject({ REDIS_URL: undefined });
  });

  it('wants two ports for two servers, and none but the gateway’s where there is no sandbox', () => {
    expect(messageOf({ PORT: '4010' })).toContain('PORT, SANDBOX_PORT: both are 4010');
    expect(readVariables({ PORT: '0', SANDBOX_PORT: '0' })).toMatchObject({ PORT: 0 });
    const inFront = { PORT: '4010', UPSTREAM_URL: 'http://127.0.0.1:9', WEBHOOK_SECRET: 'x'.repeat(32) };
    expect(readVariables(inFront)).toMatchObject({ PORT: 4010 });
  });

  it('points at names that nothing reads and that are all but one that is read', () => {
    const meant = (name: string) =>
      misspellingsIn({ [name]: 'x' }).map((text) => /Is (\w+) meant/.exec(text)?.[1]);
    expect(meant('UPSTREAM_ULR')).toEqual(['UPSTREAM_URL']);
    expect(meant('WEBHOOK_SECRETS')).toEqual(['WEBHOOK_SECRET']);
    expect(meant('REDIS_URI')).toEqual(['REDIS_URL']);
    expect(meant('PROT')).toEqual(['PORT']);
    expect(meant('OPERATION_TIMEOUT')).toEqual(['OPERATION_TIMEOUT_MS']);
    expect(meant('OPERATION_TIMEOUT_SECONDS')).toEqual(['OPERATION_TIMEOUT_MS']);
    expect(meant('LISTS_MAX_AGE_MS')).toEqual(['LISTS_MAX_AGE']);
    expect(meant('WEBHOOK_SECRET_FILE')).toEqual(['WEBHOOK_SECRET']);
    for (const name of [
      'HOME',
      'PATH',
      'PWD',
      'USER',
      'HOSTNAME',
      'NODE_ENV',
      'EDITOR',
      'SHELL',
      'REDIS_HOST',
    ]) {
      expect(meant(name)).toEqual([]);
    }
    expect(messageOf({ UPSTREAM_URL: 'http://127.0.0.1:9', WEBHOOK_SECRT: 'hidden' })).toMatch(
      /WEBHOOK_SECRET: is not set.*\n {2}WEBHOOK_SECRT is set, and nothing reads it\. Is WEBHOOK_SECRET meant\?$/,
    );
    // Set beside the right one it is another program's.
    expect(misspellingsIn({ REDIS_URI: 'x', REDIS_URL: 'redis://127.0.0.1' })).toEqual([]);
  });
});
