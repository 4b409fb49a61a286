import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { hear, tokens } from '../../packages/client/src/tokens.ts';

it('a token that was refused stays so, though an earlier one is accepted after that', async () => {
  const given = ['one', 'two', 'two', 'three'];
  const told: boolean[] = [];
  const next = tokens(({ refused }) => {
    told.push(refused);
    return given.shift() ?? '';
  }, 1_000);
  const [one, two] = [await next(), await next()];
  two.refuse();
  one.accept();
  const again = await next();
  expect(told).toEqual([false, false, true]);
  again.accept();
  await next();
  expect(told).toEqual([false, false, true, false]);
});

it('a token that was refused stays so, though a request that was sent before is answered after that', async () => {
  const told: boolean[] = [];
  const next = tokens(({ refused }) => {
    told.push(refused);
    return 'the same';
  }, 1_000);
  const [first, second] = [await next(), await next()];
  first.refuse();
  second.accept();
  const third = await next();
  third.accept();
  await next();
  expect(told).toEqual([false, false, true, false]);
});

it('a token that an answer refused stays so over HTTP until an answer with data has accepted it', async () => {
  const refusal = { errors: [{ message: 'No.', extensions: { code: 'UNAUTHENTICATED' } }] };
  const failure = { errors: [{ message: 'Later.', extensions: { code: 'INTERNAL' } }] };
  const answers: object[] = [refusal, failure, { data: {} }, { data: {} }];
  const server = createServer((_, response) => response.end(JSON.stringify(answers.shift())));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const told: boolean[] = [];
  const source = createFetch({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token({ refused }) {
      told.push(refused);
      return 'the same';
    },
  });
  while (answers.length > 0) await source.query('{ __typename }', {});
  expect(told).toEqual([false, true, true, false]);
  server.close();
});

it('a token is not told as refused because something else was', async () => {
  const errors = [{ message: 'Later.', extensions: { code: 'UPSTREAM_UNAVAILABLE' } }];
  const header = { code: 'UNAUTHENTICATED', header: 'x-api-key' };
  const answers = [{ errors }, { data: {}, errors }, { errors: [{ message: 'No.', extensions: header }] }];
  const told: boolean[] = [];
  const next = tokens(({ refused }) => {
    told.push(refused);
    return 'the same';
  }, 1_000);
  for (const answer of answers) hear(await next(), answer);
  await next();
  expect(told).toEqual([false, false, false, false]);
});

it('a token that does not come is given up, which its giver hears, and the next is asked for', async () => {
  const heard: AbortSignal[] = [];
  const ask = tokens(({ signal }) => {
    heard.push(signal);
    return heard.length === 1 ? new Promise<string>(() => {}) : 'a token';
  }, 50);
  await expect(ask()).rejects.toThrow('No answer came.');
  expect(heard[0]?.aborted).toBe(true);
  expect((await ask()).text).toBe('a token');
  expect(heard[1]?.aborted).toBe(false);
});
