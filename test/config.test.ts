import { describe, expect, it } from 'vitest';
import { ConfigError, readVariables } from '../src/config.ts';

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
      SANDBOX_SPEED: 60,
      UPSTREAM_TOKEN_CLIENT_CLAIM: ['client_id', 'clientId', 'cid', 'sub'],
    });
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

  it('wants a webhook secret beside an upstream of one’s own', () => {
    expect(messageOf({ UPSTREAM_URL: 'https://api.example.mx' })).toContain('WEBHOOK_SECRET');
    expect(
      readVariables({ UPSTREAM_URL: 'https://api.example.mx', WEBHOOK_SECRET: 'new,old' }),
    ).toMatchObject({
      UPSTREAM_URL: 'https://api.example.mx',
      WEBHOOK_SECRET: ['new', 'old'],
    });
  });
});
