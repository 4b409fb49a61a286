import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { EventLog, EventType } from '../../src/events/log.ts';
import { ingressToken, ingressUrl } from '../../src/ingress/addresses.ts';
import { ids } from '../helpers/events.ts';
import { cep, SECRET, speiCredit, startIngress } from '../helpers/ingress.ts';

describe('a webhook that is what it should be', () => {
  it('is answered 201 once its event is in the log', async () => {
    await using ingress = await startIngress();
    const message = speiCredit();
    const response = await ingress.post('MONEY_IN', message);
    expect([response.status, await response.text()]).toEqual([201, '']);
    const { events } = await ingress.log.readAfter(ingress.clientId, null, 5);
    expect(events).toEqual([
      {
        cursor: expect.any(String),
        id: message.id_msg,
        type: 'MONEY_IN',
        receivedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        decision: 'ACCEPTED',
        payload: message,
      },
    ]);
  });

  it.each(['INT_CREDIT', 'SPEI_CREDIT ', 'spei_credit', 'SOMETHING_NEW', undefined, 7])(
    'of sub-category %j is kept as information',
    async (sub_category) => {
      await using ingress = await startIngress();
      expect((await ingress.post('MONEY_IN', speiCredit({ body: { sub_category } }))).status).toBe(201);
      const { events } = await ingress.log.readAfter(ingress.clientId, null, 5);
      expect(events[0]?.decision).toBe('INFORMED');
    },
  );

  it('is one event however often it comes, with its keys in any order', async () => {
    await using ingress = await startIngress();
    const message = speiCredit();
    const shuffled = Object.fromEntries(Object.entries(message).reverse());
    const answers = [];
    for (const body of [message, shuffled, message])
      answers.push((await ingress.post('MONEY_IN', body)).status);
    expect(answers).toEqual([201, 201, 201]);
    expect((await ingress.log.readAfter(ingress.clientId, null, 5)).events).toHaveLength(1);
    expect(ingress.metrics.counts['quarantined']).toBeUndefined();
  });

  it('is put aside, with an alarm, when it repeats a message with other contents', async () => {
    await using ingress = await startIngress();
    const message = speiCredit();
    await ingress.post('MONEY_IN', message);
    const changed = speiCredit({ id_msg: message.id_msg, body: { ...message.body, amount: '9999.00' } });
    expect((await ingress.post('MONEY_IN', changed)).status).toBe(201);
    const { events } = await ingress.log.readAfter(ingress.clientId, null, 5);
    expect(events.map((event) => event.payload)).toEqual([message]);
    expect(ingress.quarantined()).toEqual([{ reason: 'conflict', body: JSON.stringify(changed) }]);
    expect(ingress.logger.lines).toContainEqual(expect.objectContaining({ level: 'error' }));
  });

  it('is put aside also when it repeats a message that still waits for the log', async () => {
    const made = await startIngress();
    const waiting: EventLog['append'] = async () => ({
      ...{ answer: { status: 201 }, duplicate: true, conflict: true, cursor: null },
    });
    const log: EventLog = Object.assign(Object.create(made.log), {
      append: waiting,
      recall: async () => undefined,
    });
    await using ingress = await startIngress({ log });
    expect((await ingress.post('MONEY_IN', speiCredit())).status).toBe(201);
    expect(ingress.quarantined().map(({ reason }) => reason)).toEqual(['conflict']);
    await made[Symbol.asyncDispose]();
  });

  it('takes numeric message ids beyond 2^53 for as many messages, and sees where other contents differ', async () => {
    await using ingress = await startIngress();
    const credit = (id: string, reference = '1') =>
      `{"id_msg":${id},"body":{"id":"t-${id}","amount":"1.00","reference":${reference}}}`;
    for (const id of ['9007199254740992', '9007199254740993']) {
      expect((await ingress.post('MONEY_IN', credit(id))).status).toBe(201);
    }
    const { events } = await ingress.log.readAfter(ingress.clientId, null, 10);
    expect(events.map(({ id }) => id)).toEqual(['9007199254740992', '9007199254740993']);
    for (const reference of ['9007199254740992', '9007199254740993']) {
      expect((await ingress.post('MONEY_IN', credit('7', reference))).status).toBe(201);
    }
    expect(ingress.quarantined().map(({ reason }) => reason)).toEqual(['conflict']);
  });

  it('without a message id is recognised by the credit it tells of', async () => {
    await using ingress = await startIngress();
    const { id_msg: _, ...message } = speiCredit();
    await ingress.post('MONEY_IN', message);
    await ingress.post('MONEY_IN', message);
    await ingress.post('MONEY_IN', { ...message, body: { ...message.body, id: randomUUID() } });
    expect((await ingress.log.readAfter(ingress.clientId, null, 5)).events).toHaveLength(2);
  });

  it('of type CEP is another event when its body is another, under the same message id', async () => {
    await using ingress = await startIngress();
    const { clientId } = ingress;
    const id = randomUUID();
    for (const status of ['PENDING', 'COMPLETED', 'PENDING', 'NEVER_HEARD_OF']) {
      expect((await ingress.post('CEP', cep(clientId, status, id))).status).toBe(201);
    }
    const { events } = await ingress.log.readAfter(clientId, null, 5);
    expect(ids(events)).toEqual([id, id, id]);
    expect(events.map((event) => event.decision)).toEqual([undefined, undefined, undefined]);
  });

  it('of type CEP names its client in either case', async () => {
    const clientId = 'abcdef01-2345-4789-8abc-def012345678';
    const forms = [clientId, clientId.toUpperCase()];
    await using ingress = await startIngress();
    for (const registered of forms)
      for (const named of forms)
        expect((await ingress.postAs(registered, 'CEP', cep(named, 'PENDING'))).status).toBe(201);
    expect(ingress.metrics.counts).toMatchObject({ appended: 4 });
  });

  it('of type STATUS_UPDATE may be any JSON value, and repeats only under a message id, with the same contents', async () => {
    await using ingress = await startIngress();
    const values = [
      'null',
      '7',
      '"text"',
      '[]',
      '{"a":1}',
      '{"a":1}',
      '{"id_msg":"m","a":1}',
      '{"id_msg":"m","a":2}',
      '{"a":1,"id_msg":"m"}',
    ];
    for (const value of values) expect((await ingress.post('STATUS_UPDATE', value)).status).toBe(201);
    const { events } = await ingress.log.readAfter(ingress.clientId, null, 10);
    expect(events.map((event) => event.payload)).toEqual(
      values.slice(0, -1).map((value) => JSON.parse(value)),
    );
    expect(new Set(ids(events)).size).toBe(7);
    expect(events.at(-1)?.id).toBe('m');
  });

  it('keeps a byte order mark out and everything else in', async () => {
    await using ingress = await startIngress();
    const text = '{"__proto__":{"polluted":true},"ñ":"€","n":1e400}';
    const bytes = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)]);
    expect((await ingress.post('STATUS_UPDATE', bytes)).status).toBe(201);
    const { events } = await ingress.log.readAfter(ingress.clientId, null, 5);
    // A number that JavaScript cannot hold is kept as it was written, too.
    expect(JSON.stringify(events[0]?.payload)).toBe(text);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe('a webhook that lacks what it needs', () => {
  const without = (name: string) => speiCredit({ body: { [name]: undefined } });
  const cases: [string, EventType, unknown, string][] = [
    ['is not JSON', 'MONEY_IN', '{"id_msg":', 'unreadable'],
    ['is empty', 'STATUS_UPDATE', '', 'unreadable'],
    ['is not UTF-8', 'STATUS_UPDATE', Buffer.from([0x22, 0xff, 0x22]), 'unreadable'],
    ['is compressed', 'MONEY_IN', gzipSync(JSON.stringify(speiCredit())), 'unreadable'],
    ['nests without end', 'STATUS_UPDATE', '['.repeat(20_000) + ']'.repeat(20_000), 'unreadable'],
    ['has no id', 'MONEY_IN', without('id'), 'incomplete'],
    ['has no amount', 'MONEY_IN', without('amount'), 'incomplete'],
    ['has an empty amount', 'MONEY_IN', speiCredit({ body: { amount: ' ' } }), 'incomplete'],
    ['has an amount that is none', 'MONEY_IN', speiCredit({ body: { amount: 'much' } }), 'incomplete'],
    ['has tenths of cents', 'MONEY_IN', speiCredit({ body: { amount: '1.555' } }), 'incomplete'],
    ['has them in a number', 'MONEY_IN', speiCredit({ body: { amount: 1.555 } }), 'incomplete'],
    ['has a null id', 'MONEY_IN', speiCredit({ body: { id: null } }), 'incomplete'],
    ['has the id `None`', 'MONEY_IN', speiCredit({ body: { id: 'None' } }), 'incomplete'],
    ['has no body', 'MONEY_IN', { id_msg: 'm' }, 'incomplete'],
    ['is a list', 'MONEY_IN', [], 'incomplete'],
    ['has no status', 'CEP', { client_id: 'client', payload: { body: {} } }, 'incomplete'],
    ['is not wrapped', 'CEP', cep('client', 'PENDING').payload, 'incomplete'],
    ['is a credit by another name', 'MONEY_IN', { ...speiCredit(), msg_name: 'MONEY_OUT' }, 'misnamed'],
    ['is a credit whose name is no text', 'MONEY_IN', { ...speiCredit(), msg_name: 7 }, 'misnamed'],
    ['is of another type', 'MONEY_IN', { ...speiCredit(), webhook_type: 'STATUS_UPDATE' }, 'misnamed'],
    ['is a receipt', 'MONEY_IN', cep('client', 'COMPLETED'), 'misnamed'],
    ['is a credit', 'CEP', { ...cep('client', 'PENDING'), payload: speiCredit() }, 'misnamed'],
    ['is wrapped as a credit', 'CEP', { ...cep('client', 'PENDING'), webhook_type: 'MONEY_IN' }, 'misnamed'],
    ['is a credit', 'STATUS_UPDATE', speiCredit(), 'misnamed'],
    ['is a receipt', 'STATUS_UPDATE', cep('client', 'COMPLETED'), 'misnamed'],
    ['names another client', 'CEP', cep(randomUUID(), 'COMPLETED'), 'foreign-client'],
  ];

  it.each(cases)('because it %s is answered 400 and put aside', async (_, type, body, reason) => {
    await using ingress = await startIngress({ clientId: 'client' });
    expect((await ingress.post(type, body)).status).toBe(400);
    expect((await ingress.log.readAfter('client', null, 5)).events).toEqual([]);
    expect(ingress.quarantined().map((row) => row.reason)).toEqual([reason]);
    expect(ingress.metrics.counts['quarantined']).toBe(1);
  });

  it.each<[string, EventType, unknown]>([
    ['a credit', 'MONEY_IN', { ...speiCredit(), msg_name: undefined }],
    ['a receipt', 'CEP', { client_id: 'client', payload: { body: { status: 'PENDING' } } }],
    ['a status update by a name of its own', 'STATUS_UPDATE', { msg_name: 'ACCOUNT_BLOCKED' }],
  ])('is kept where nothing contradicts its address: %s', async (_, type, body) => {
    await using ingress = await startIngress({ clientId: 'client' });
    expect((await ingress.post(type, body)).status).toBe(201);
    const { events } = await ingress.log.readAfter('client', null, 5);
    expect(events.map((event) => event.type)).toEqual([type]);
  });

  it('fills the quarantine with no more than the newest two hundred of one client and reason', async () => {
    await using ingress = await startIngress();
    for (let sent = 0; sent < 210; sent += 1) await ingress.post('MONEY_IN', `{${sent}`);
    const rows = ingress.quarantined();
    expect([rows.length, rows[0]?.body, rows.at(-1)?.body]).toEqual([200, '{10', '{209']);
  });
});

describe('a request that proves nothing', () => {
  it('is answered 401, whatever it is that is wrong', async () => {
    await using ingress = await startIngress();
    const { url, clientId } = ingress;
    const right = ingressUrl(url, clientId, 'CEP', SECRET);
    const signature = right.split('/').at(-1) ?? '';
    const wrong = [
      ingressUrl(url, clientId, 'CEP', 'another secret'),
      ingressUrl(url, randomUUID(), 'CEP', SECRET).replace(/[^/]+$/, signature),
      `${url}/webhooks/${clientId}/MONEY_IN/${signature}`,
      `${url}/webhooks/${clientId}/CEP`,
      `${url}/webhooks/${clientId}/CEP/`,
      `${url}/webhooks/${clientId}/CEP/${signature.slice(1)}`,
      `${url}/webhooks/`,
    ];
    for (const address of wrong) {
      const response = await fetch(address, {
        method: 'POST',
        body: JSON.stringify(cep(clientId, 'PENDING')),
      });
      expect([response.status, await response.text()]).toEqual([401, '']);
    }
    expect((await ingress.log.readAfter(clientId, null, 5)).events).toEqual([]);
  });

  it('is accepted under either of two secrets while they rotate', async () => {
    await using ingress = await startIngress({ secrets: ['new', SECRET] });
    const { url, clientId } = ingress;
    for (const secret of ['new', SECRET]) {
      const address = ingressUrl(url, clientId, 'STATUS_UPDATE', secret);
      expect((await fetch(address, { method: 'POST', body: '1' })).status).toBe(201);
      expect(ingress.metrics.counts['olderSecret'] ?? 0).toBe(secret === 'new' ? 0 : 1);
    }
    const former = ingressUrl(url, clientId, 'STATUS_UPDATE', 'old');
    expect((await fetch(former, { method: 'POST', body: '1' })).status).toBe(401);
    expect(ingress.metrics.counts['olderSecret']).toBe(1);
  });

  it('needs the token too where its header is known', async () => {
    await using ingress = await startIngress({ tokenHeader: 'X-Token', secrets: ['new', SECRET] });
    const { clientId } = ingress;
    const token = ingressToken(clientId, 'STATUS_UPDATE', SECRET);
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await ingress.post('STATUS_UPDATE', 1, headers)).status;
    expect(await status({})).toBe(401);
    expect(await status({ 'x-token': '' })).toBe(401);
    expect(await status({ 'x-token': ingressToken(clientId, 'CEP', SECRET) })).toBe(401);
    expect(await status({ 'x-token': token })).toBe(201);
    for (const scheme of ['Bearer', 'bearer'])
      expect(await status({ 'x-token': `${scheme} ${token}` })).toBe(201);
    expect(await status({ 'x-token': ingressToken(clientId, 'STATUS_UPDATE', 'new') })).toBe(201);
    // The token alone proves nothing.
    const unsigned = ingressUrl(ingress.url, clientId, 'STATUS_UPDATE', 'another secret');
    const sent = await fetch(unsigned, { method: 'POST', headers: { 'x-token': token }, body: '1' });
    expect(sent.status).toBe(401);
  });

  it('counts for an older secret also where that has signed the token alone', async () => {
    await using ingress = await startIngress({ tokenHeader: 'X-Token', secrets: ['new', SECRET] });
    const { url, clientId, metrics } = ingress;
    const address = ingressUrl(url, clientId, 'STATUS_UPDATE', 'new');
    const counted = [];
    for (const secret of ['new', SECRET]) {
      const headers = { 'x-token': ingressToken(clientId, 'STATUS_UPDATE', secret) };
      expect((await fetch(address, { method: 'POST', headers, body: '1' })).status).toBe(201);
      counted.push(metrics.counts['olderSecret'] ?? 0);
    }
    expect(counted).toEqual([0, 1]);
  });

  it('is not read, and its address is in no log line', async () => {
    await using ingress = await startIngress();
    await ingress.post('MONEY_IN', '{');
    const signature = ingressUrl('', ingress.clientId, 'MONEY_IN', SECRET).split('/').at(-1) ?? '';
    expect(JSON.stringify(ingress.logger.lines)).not.toContain(signature);
  });
});

describe('a request that is not a delivery', () => {
  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'because it is a %s is answered 405',
    async (method) => {
      await using ingress = await startIngress();
      const address = ingressUrl(ingress.url, ingress.clientId, 'CEP', SECRET);
      const response = await fetch(address, { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
    },
  );

  it('because it is over 64 KiB is answered 413, also without a length', async () => {
    await using ingress = await startIngress();
    const text = (length: number): string => JSON.stringify('x'.repeat(length - 2));
    expect((await ingress.post('STATUS_UPDATE', text(65_536))).status).toBe(201);
    expect((await ingress.post('STATUS_UPDATE', text(65_537))).status).toBe(413);
    const address = ingressUrl(ingress.url, ingress.clientId, 'STATUS_UPDATE', SECRET);
    const request = httpRequest(address, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } });
    request.on('error', () => {});
    request.write(text(200_000));
    const [response] = await once(request, 'response');
    request.destroy();
    expect(response.statusCode).toBe(413);
  });

  it('because it is slower than 5 s is answered 408, and its connection closed', async () => {
    await using ingress = await startIngress();
    const { pathname } = new URL(ingressUrl(ingress.url, ingress.clientId, 'CEP', SECRET));
    const socket = connect(ingress.port, '127.0.0.1');
    socket.write(`POST ${pathname} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{`);
    let reply = '';
    socket.on('data', (chunk) => {
      reply += String(chunk);
    });
    await once(socket, 'close');
    expect(reply).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('because its sender went away leaves nothing behind', async () => {
    await using ingress = await startIngress();
    const address = ingressUrl(ingress.url, ingress.clientId, 'STATUS_UPDATE', SECRET);
    const request = httpRequest(address, { method: 'POST', headers: { 'content-length': 10 } });
    request.on('error', () => {});
    request.write('1234');
    await once(request, 'socket');
    request.destroy();
    await ingress.drain();
    expect((await ingress.log.readAfter(ingress.clientId, null, 5)).events).toEqual([]);
    expect(ingress.metrics.counts['quarantined']).toBeUndefined();
  });
});

describe('an ingress that drains', () => {
  it('finishes what is in flight and refuses what comes', async () => {
    await using ingress = await startIngress();
    const address = ingressUrl(ingress.url, ingress.clientId, 'STATUS_UPDATE', SECRET);
    const request = httpRequest(address, { method: 'POST' });
    request.write('"half');
    // The second request is answered after the first has been taken in: both come over the same loop.
    await ingress.post('STATUS_UPDATE', 1);
    const drained = ingress.drain();
    const refused = await ingress.post('STATUS_UPDATE', 2);
    expect([refused.status, refused.headers.get('connection')]).toEqual([503, 'close']);
    const answered = once(request, 'response');
    request.end(' and whole"');
    const [response] = await answered;
    expect(response.statusCode).toBe(201);
    response.resume();
    await drained;
    const { events } = await ingress.log.readAfter(ingress.clientId, null, 5);
    expect(events.map((event) => event.payload)).toEqual([1, 'half and whole']);
  });
});
