import { describe, expect, test } from 'vitest';
import { at, expectRefusal, openSandbox, READINGS } from './harness.ts';
import { tables } from './spec.ts';

const URL = 'https://receiver.example.mx/hook?a=b';

describe.each(READINGS)('webhook management, %s choices', (name, choices) => {
  const spec = tables(name === 'default');

  test.each(['MONEY_IN', 'STATUS_UPDATE', 'CEP'])(
    'a %s webhook is created ACTIVE and listed',
    async (type) => {
      await using box = await openSandbox(choices);
      const reply = await box.register(type, URL, 'secret');
      expect(reply.status).toBe(choices.webhookCreated);
      const webhook = reply.as(spec.webhook);
      expect(webhook).toMatchObject({
        clientId: box.seeded.clientId,
        url: URL,
        token: 'secret',
        webhookType: type,
        webhookStatus: 'ACTIVE',
        authType: 'AUTH',
        deletedAt: choices.absentTimestamp,
      });
      const list = (await box.get(box.of('/webhooks'))).as(spec.webhooks);
      expect(list.totalItem).toBe(1);
      expect(list.data).toEqual([webhook]);
    },
  );

  test.each<[string, Record<string, unknown>]>([
    ['no url', { url: undefined }],
    ['a url that is none', { url: 'nowhere' }],
    ['a url of another scheme', { url: 'ftp://x/y' }],
    ['no token', { token: undefined }],
    ['a token with a line break', { token: 'a\nb' }],
    ['no type', { webhook_type: undefined }],
    ['an unknown type', { webhook_type: 'MONEY_OUT' }],
    ['no client', { client_id: undefined }],
  ])('a webhook with %s is refused', async (_what, change) => {
    await using box = await openSandbox(choices);
    const body = { client_id: box.seeded.clientId, url: URL, token: 't', webhook_type: 'CEP', ...change };
    expectRefusal(await box.post(box.of('/webhooks'), body), { status: 400, reason: 'DATA_ERROR' });
  });

  test('the legacy endpoint creates MONEY_IN and STATUS_UPDATE, not CEP', async () => {
    await using box = await openSandbox(choices);
    const body = (webhook_type: string) => ({
      client_id: box.seeded.clientId,
      url: URL,
      token: 't',
      webhook_type,
      auth_type: 'AUTH',
    });
    for (const type of ['MONEY_IN', 'STATUS_UPDATE']) {
      const reply = await box.post('/v1/webhooks', body(type));
      expect(reply.status).toBe(choices.webhookCreated);
      expect(reply.as(spec.webhook).webhookType).toBe(type);
    }
    expectRefusal(await box.post('/v1/webhooks', body('CEP')), { status: 400, reason: 'DATA_ERROR' });
    const other = { ...body('MONEY_IN'), client_id: at(box.seeded.otherClients, 0).clientId };
    expectRefusal(await box.post('/v1/webhooks', other), { status: choices.otherClient });
  });

  test('PATCH changes what is sent and nothing else', async () => {
    await using box = await openSandbox(choices);
    const made = (await box.register('CEP', URL, 'secret')).as(spec.webhook);
    const path = box.of(`/webhooks/${made.id}`);
    const listed = async () => at((await box.get(box.of('/webhooks'))).as(spec.webhooks).data, 0);
    const reply = await box.call('PATCH', path, { webhook_status: 'INACTIVE', auth_header: 'x' });
    expect(reply.status).toBe(choices.webhookAnswers === 'wrapped' ? 204 : 200);
    const { updatedAt: _before, ...unchanged } = made;
    expect(await listed()).toMatchObject({ ...unchanged, webhookStatus: 'INACTIVE' });
    await box.call('PATCH', path, { url: 'http://127.0.0.1:1/', token: 'new' });
    expect(await listed()).toMatchObject({
      url: 'http://127.0.0.1:1/',
      token: 'new',
      webhookStatus: 'INACTIVE',
    });
    for (const wrong of [{ url: 'x' }, { webhook_status: 'BLOCKED' }, { token: '' }, []]) {
      expectRefusal(await box.call('PATCH', path, wrong), { status: 400, reason: 'DATA_ERROR' });
    }
  });

  test('GET reads one webhook, in a form that is a choice', async () => {
    await using box = await openSandbox(choices);
    const made = (await box.register('CEP', URL)).as(spec.webhook);
    const reply = await box.get(box.of(`/webhooks/${made.id}`));
    expect(reply.status).toBe(200);
    const body: unknown = JSON.parse(reply.text);
    expect(body).toMatchObject(choices.webhookAnswers === 'wrapped' ? { data: { id: made.id } } : made);
  });

  test('DELETE is soft: the webhook is gone from use, and from the list by choice', async () => {
    await using box = await openSandbox(choices);
    const made = (await box.register('CEP', URL)).as(spec.webhook);
    const path = box.of(`/webhooks/${made.id}`);
    const reply = await box.call('DELETE', path);
    expect(reply.status).toBe(choices.webhookAnswers === 'wrapped' ? 200 : 204);
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const body = method === 'PATCH' ? {} : undefined;
      expectRefusal(await box.call(method, path, body), { status: 404 });
    }
    const { data, totalItem } = (await box.get(box.of('/webhooks'))).as(spec.webhooks);
    expect(totalItem).toBe(choices.deletedWebhooksListed ? 1 : 0);
    for (const webhook of data) {
      expect(webhook.webhookStatus).toBe('INACTIVE');
      expect(webhook.deletedAt).toMatch(/^\d{4}-/);
    }
  });

  test('another client’s webhook is out of reach, by read, change and deletion', async () => {
    await using box = await openSandbox(choices);
    const other = at(box.seeded.otherClients, 0);
    const theirs = { authorization: `Bearer ${other.accessToken}` };
    const listed = async () =>
      (await box.call('GET', `/v1/clients/${other.clientId}/webhooks`, undefined, theirs)).as(spec.webhooks);
    await box.call(
      'POST',
      `/v1/clients/${other.clientId}/webhooks`,
      { client_id: other.clientId, url: URL, token: 't', webhook_type: 'CEP' },
      theirs,
    );
    const before = await listed();
    const path = box.of(`/webhooks/${at(before.data, 0).id}`);
    expectRefusal(await box.get(path), { status: 404 });
    expectRefusal(await box.call('PATCH', path, { webhook_status: 'INACTIVE' }), { status: 404 });
    expectRefusal(await box.call('DELETE', path), { status: 404 });
    expect(await listed()).toEqual(before);
    expect((await box.get(box.of('/webhooks'))).as(spec.webhooks).totalItem).toBe(0);
  });

  test('a webhook that does not exist is 404', async () => {
    await using box = await openSandbox(choices);
    const path = box.of('/webhooks/3f0c1a52-6d1c-4c1e-9a53-0f3fb1a1c111');
    expectRefusal(await box.get(path), { status: 404 });
    expectRefusal(await box.call('DELETE', path), { status: 404 });
  });
});
