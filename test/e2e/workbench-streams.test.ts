import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeAnswers } from '../helpers/browser.ts';
import { until } from '../helpers/until.ts';
import { type Demo, startDemo } from './workbench-demo.ts';
import { deed, openTab, play, result, rows, stop, visit, watchMoneyIn } from './workbench-page.ts';

let demo: Demo;

beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo?.[Symbol.asyncDispose]());

const RESUMING = (name: string) =>
  `subscription ${name}($after: Cursor) { moneyIn(after: $after) { cursor } }`;

/** Writes an operation in the place of that which the tab has. */
async function write(page: Page, query: string): Promise<void> {
  await page.locator('.wb-operation .view-lines').click();
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.insertText(query);
}

/** Plays an operation in a tab of its own. */
async function playNew(page: Page, name: string, query: string): Promise<void> {
  await page.getByRole('button', { name: 'New tab' }).click();
  await write(page, query);
  await page.getByRole('tab', { name }).waitFor();
  await play(page);
}

/** A proxy that passes requests on, and not that a client wants to upgrade one, as nginx does by itself, until it is told to. */
async function startProxy(gateway: string) {
  let refused = 0;
  const { hostname, port: gatewayPort } = new URL(gateway);
  const tunnels = new Set<Duplex>();
  const tunnel = ({ url, rawHeaders }: IncomingMessage, client: Duplex) => {
    const server = connect(Number(gatewayPort), hostname);
    const headers = rawHeaders.map((text, place) => text + (place % 2 === 0 ? ': ' : '\r\n'));
    server.write(`GET ${url} HTTP/1.1\r\n${headers.join('')}\r\n`);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      tunnels.add(one.on('error', () => one.destroy()).on('close', () => other.destroy()));
      one.pipe(other);
    }
  };
  const proxy = createServer((incoming, answer) => {
    const { upgrade, connection: _own, ...headers } = incoming.headers;
    const { method } = incoming;
    const outgoing = request(gateway + incoming.url, { method, headers }, (response) => {
      if (upgrade !== undefined) refused += 1;
      answer.writeHead(response.statusCode ?? 502, response.headers);
      answer.flushHeaders();
      response.pipe(answer);
    });
    outgoing.on('error', () => answer.destroy());
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    /** How many requests for a WebSocket the gateway has answered as any other. */
    refused: () => refused,
    /** Passes WebSockets on from now. */
    passSockets: () => proxy.on('upgrade', tunnel),
    /** Cuts those that are open, and passes none on from now. */
    cutSockets() {
      proxy.off('upgrade', tunnel);
      for (const end of tunnels) end.destroy();
    },
    async [Symbol.asyncDispose]() {
      proxy.close();
      proxy.closeAllConnections();
    },
  };
}

describe('a stream', () => {
  it('goes on while another tab is used, and its tab says so', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    await openTab(page, 'Instruments');
    await demo.credit('Fuera Uno');
    const tab = page.locator('.wb-tab', { hasText: 'WatchMoneyIn' });
    await tab.locator('.wb-dot').waitFor();
    await tab.locator('.wb-count', { hasText: /^1$/ }).waitFor();
    await play(page);
    await result(page, /"totalCount": \d+/);
    await demo.credit('Fuera Dos');
    await tab.locator('.wb-count', { hasText: /^2$/ }).waitFor();
    await openTab(page, 'WatchMoneyIn');
    expect(await page.locator('.wb-says').allInnerTexts()).toEqual([
      '10.00 MXN from Fuera Dos',
      '10.00 MXN from Fuera Uno',
    ]);
  });

  it('lists the last 200 events, newest first, which can be opened, paused, and cleared', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    for (let count = 1; count <= 205; count += 1) await demo.credit(`Pagador ${count}`);
    await page.getByText('205 events', { exact: true }).waitFor();
    expect(await rows(page).count()).toBe(200);
    expect(await page.locator('.wb-says').first().innerText()).toContain('Pagador 205');
    await rows(page).nth(3).click();
    expect(await page.locator('.wb-event').nth(3).locator('pre').innerText()).toContain('"Pagador 202"');

    await page.getByRole('button', { name: 'Pause' }).click();
    await demo.credit('Pagador 206');
    await page.getByText('1 waiting').waitFor();
    expect(await page.locator('.wb-says').first().innerText()).toContain('Pagador 205');
    // The oldest is shown for as long as the list stands still.
    expect(await page.locator('.wb-says').last().innerText()).toContain('Pagador 6');
    await page.getByRole('button', { name: 'Go on' }).click();
    expect(await page.locator('.wb-says').first().innerText()).toContain('Pagador 206');

    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByText('Listening. Nothing has happened yet.').waitFor();
  });

  it.each(['SSE', 'WS'])(
    'that is cut over %s resumes where it was, and says how many it caught up',
    async (transport) => {
      await using one = await demo.open({}, transport === 'WS' ? '?subscriptions=WS' : '');
      const { page } = one;
      await page.clock.install();
      await watchMoneyIn(page);
      await demo.credit('Antes');
      await rows(page).first().waitFor();
      // It stays cut for as long as the clock of the page stands.
      await stop(page);
      expect(await deed(page, 'Cut')).toContain('One stream is cut');
      await page.locator('.wb-status.wb-cut').waitFor();
      for (const name of ['Uno', 'Dos', 'Tres']) await demo.credit(name);
      await page.clock.resume();
      await page.getByText(/Reconnected, resumed from cursor/).waitFor();
      await page.getByText('3 caught up: the gap is closed.').waitFor();
      expect(await page.locator('.wb-says').allInnerTexts()).toEqual(
        ['Tres', 'Dos', 'Uno', 'Antes'].map((name) => `10.00 MXN from ${name}`),
      );
      // Each time as many as were missed then.
      await stop(page);
      await page.locator('.wb-sandbox').getByRole('button', { name: 'Cut', exact: true }).click();
      await page.locator('.wb-status.wb-cut').waitFor();
      await demo.credit('Cuatro');
      await page.clock.resume();
      await page.getByText('1 caught up: the gap is closed.').waitFor();
    },
  );

  it('resumes over SSE at its last event, also where a bookmark from before it has come in one piece with it', async () => {
    await using one = await demo.open();
    const { page } = one;
    const resumedAt: (string | null)[] = [];
    const credit = JSON.stringify({ data: { moneyIn: { cursor: 'second', payer: { name: 'Uno' } } } });
    await page.route(
      (url) => url.pathname === '/graphql',
      async (route) => {
        const { accept, 'last-event-id': cursor = null } = await route.request().allHeaders();
        if (accept !== 'text/event-stream') return route.fallback();
        resumedAt.push(cursor);
        const body = `id: first\n\nid: second\nevent: next\ndata: ${credit}\n\n`;
        await route.fulfill({ contentType: 'text/event-stream', body: resumedAt.length === 1 ? body : '' });
      },
    );
    await openTab(page, 'WatchMoneyIn');
    await play(page);
    await rows(page).first().waitFor();
    await until(() => resumedAt.length > 1);
    expect(resumedAt.slice(0, 2)).toEqual([null, 'second']);
  });

  it.each([
    ['SSE', [31_000]],
    // The page pings, and then waits for the answer.
    ['WS', [11_000, 6_000]],
  ] as const)('whose network is gone without a word is connected again over %s', async (transport, leaps) => {
    await using one = await demo.open({}, transport === 'WS' ? '?subscriptions=WS' : '');
    const { page } = one;
    let sockets = 0;
    let isGone = false;
    await page.routeWebSocket(/graphql/, (client) => {
      const isFirst = sockets === 0;
      sockets += 1;
      const server = client.connectToServer();
      client.onMessage((message) => (isFirst && isGone) || server.send(message));
      server.onMessage((message) => (isFirst && isGone) || client.send(message));
    });
    await page.reload();
    await page.locator('.wb-operation .view-line').first().waitFor();
    await page.clock.install();
    await page.evaluate(() => {
      const { fetch } = window;
      let streams = 0;
      const silenced = async (...request: Parameters<typeof fetch>): Promise<Response> => {
        const response = await fetch(...request);
        if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) return response;
        const isFirst = streams === 0;
        streams += 1;
        const heard = new TransformStream<Uint8Array, Uint8Array>({
          transform(bytes, controller) {
            if (!(isFirst && 'isGone' in window)) controller.enqueue(bytes);
          },
        });
        return new Response(response.body?.pipeThrough(heard), response);
      };
      Object.assign(window, { fetch: silenced });
    });
    await watchMoneyIn(page);
    await demo.credit('Antes');
    await rows(page).first().waitFor();
    isGone = true;
    await page.evaluate(() => Object.assign(window, { isGone: true }));
    await demo.credit('Uno');
    for (const leap of leaps) await page.clock.fastForward(leap);
    await page.getByText('1 caught up: the gap is closed.').waitFor();
    expect(await page.locator('.wb-says').allInnerTexts()).toEqual([
      '10.00 MXN from Uno',
      '10.00 MXN from Antes',
    ]);
  });

  it('over SSE reads names whole, and that nothing was missed, wherever the network has cut what it sends', async () => {
    await using one = await demo.open();
    const { page } = one;
    await page.evaluate(() => {
      const { fetch } = window;
      // The network: it brings each byte alone.
      const inBytes = async (...request: Parameters<typeof fetch>): Promise<Response> => {
        const response = await fetch(...request);
        if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) return response;
        const cut = new TransformStream<Uint8Array, Uint8Array>({
          transform(bytes, controller) {
            for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
          },
        });
        return new Response(response.body?.pipeThrough(cut), response);
      };
      Object.assign(window, { fetch: inBytes });
    });
    await watchMoneyIn(page);
    await demo.credit('Íñigo Muñoz');
    await page.locator('.wb-says', { hasText: '10.00 MXN from Íñigo Muñoz' }).waitFor();
    await deed(page, 'Cut');
    await page.getByText('Caught up: nothing was missed.').waitFor();
    expect(await rows(page).count()).toBe(1);
    expect(one.failures).toEqual([]);
  });

  it.each(['SSE', 'WS'])(
    'over %s is sent with the token of its own headers, and ends where that is refused, though the page has another',
    async (transport) => {
      await using one = await demo.open({}, transport === 'WS' ? '?subscriptions=WS' : '');
      const { page } = one;
      await openTab(page, 'WatchMoneyIn');
      await page.getByRole('tab', { name: 'Headers' }).click();
      for (const [token, status] of [
        ['a.b.c', 'ended'],
        [demo.addresses.token, 'live'],
      ] as const) {
        await page.locator('.wb-variables .graphiql-editor:not(.hidden)').click();
        await page.keyboard.press('ControlOrMeta+A');
        // What is written over a selection would be put between quotation marks.
        await page.keyboard.press('Delete');
        await page.keyboard.insertText(JSON.stringify({ Authorization: `Bearer ${token}` }));
        await play(page);
        await page.locator(`.wb-status.wb-${status}`).waitFor();
        // So is the question for the schema.
        const asked = page.waitForRequest(
          (request) => request.postData()?.includes('query IntrospectionQuery') === true,
        );
        await page.getByRole('button', { name: 'Read the schema again' }).click();
        expect((await asked).headers()['authorization']).toBe(`Bearer ${token}`);
      }
      // Nobody finds them in the browser afterwards.
      await page.reload();
      await page.getByText('Headers are not kept: press play to go on.').waitFor();
      await page.locator('.wb-status.wb-ended').waitFor();
      const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
      expect(kept).toContain('graphiql:queries');
      expect(kept).not.toContain(demo.addresses.token);
    },
  );

  it.each([
    [
      'goes on at its cursor, though another operation of its tab has an `after`',
      `query Earlier($a: Cursor) { events(after: $a) { nodes { id } } }
subscription Watch($since: Cursor) { moneyIn(after: $since) { cursor amount { amount currency } payer { name } } }`,
      ['Reconnected, resumed from cursor', '1 caught up: the gap is closed.'],
    ],
    [
      'goes on at its cursor, though its text names one',
      `query Earlier($a: Cursor) { events(after: $a) { nodes { id } } }
subscription Watch { moneyIn(after: null) { cursor amount { amount currency } payer { name } } }`,
      ['Reconnected, resumed from cursor', '1 caught up: the gap is closed.'],
    ],
    [
      'begins with now, and says so, where only a list beneath its field has an `after`',
      `query Earlier { client { id } }
subscription Watch($page: Cursor) { moneyIn { cursor account { client { accounts(after: $page) { nodes { id } } } } } }`,
      ['Reconnected.'],
    ],
  ])('over WS %s', async (_does, query, notes) => {
    await using one = await demo.open({}, `?subscriptions=WS#${new URLSearchParams({ query })}`);
    const { page } = one;
    await page.clock.install();
    await play(page);
    await page.getByRole('menuitem', { name: 'Watch' }).click();
    await page.locator('.wb-status.wb-live').waitFor();
    await demo.credit('Antes');
    await rows(page).first().waitFor();
    // It stays cut for as long as the clock of the page stands.
    await stop(page);
    await deed(page, 'Cut');
    await page.locator('.wb-status.wb-cut').waitFor();
    await demo.credit('Durante');
    await page.clock.resume();
    await page.locator('.wb-status.wb-live').waitFor();
    for (const note of notes) await page.getByText(note).waitFor();
    await demo.credit('Después');
    const count = notes.length === 1 ? 2 : 3;
    await page.getByText(`${count} events`, { exact: true }).waitFor();
    // The one that was played is also the one that is written out as code, without the other.
    await page.getByRole('button', { name: 'Code', exact: true }).click();
    await page.locator('.wb-code-text pre', { hasText: '"operationName":"Watch"' }).waitFor();
    expect(await page.locator('.wb-code-text pre').innerText()).not.toContain('Earlier');
  });

  it('is its tab’s own: its filter, its cuts, its end, and what takes its place', async () => {
    const query = 'subscription Other { moneyIn { cursor amount { amount currency } payer { name } } }';
    await using one = await demo.open({}, `#${new URLSearchParams({ query })}`);
    const { page } = one;
    const says = page.locator('.wb-says');
    await play(page);
    await page.locator('.wb-status.wb-live').waitFor();
    await watchMoneyIn(page);
    for (const name of ['Berta', 'Carla']) await demo.credit(name);
    await page.getByText('2 events', { exact: true }).waitFor();
    await page.getByLabel('Text or payment id').fill('carla');
    expect(await says.count()).toBe(1);
    await openTab(page, 'Other');
    await page.getByText('2 events', { exact: true }).waitFor();
    expect(await says.count()).toBe(2);

    await page.locator('.wb-operation .view-lines').click();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.insertText('query Other { client { id } }');
    await page.keyboard.press('Control+Enter');
    await page.locator('.wb-response').waitFor();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.insertText(query);
    await page.keyboard.press('Control+Enter');
    await page.locator('.wb-status.wb-live').waitFor();

    await openTab(page, 'WatchMoneyIn');
    await page.locator('.wb-tab', { hasText: 'Other' }).locator('.wb-close').click();
    await page.locator('.wb-tab', { hasText: 'Other' }).waitFor({ state: 'detached' });
    await page.locator('.wb-status.wb-live').waitFor();
    await stop(page);
    expect(await deed(page, 'Cut')).toContain('One stream is cut');
    await page.locator('.wb-status.wb-cut').waitFor();
    await page.clock.resume();
    await page.locator('.wb-status.wb-live').waitFor();
    await page.getByRole('button', { name: 'Stop the stream' }).click();
    expect(await deed(page, 'Cut')).toContain('No stream is live');
  });

  it('leaves room for requests however many there are, also after a reload', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    for (let more = 2; more <= 7; more += 1) {
      await playNew(page, `Watch${more}`, RESUMING(`Watch${more}`));
      await page.locator('.wb-status.wb-live').waitFor();
      const transport = await page.getByLabel('Transport').inputValue();
      expect(transport).toBe(more === 2 ? 'SSE' : 'WS');
    }
    await openTab(page, 'Instruments');
    await play(page);
    await result(page, /"totalCount": \d+/);
    // As a page leaves them that had all of them over SSE.
    await page.waitForFunction(
      () => sessionStorage.getItem('pasarela:streams')?.match(/"live"/g)?.length === 7,
    );
    await page.evaluate(() => {
      const text = sessionStorage.getItem('pasarela:streams') ?? '';
      window.addEventListener('pagehide', () =>
        sessionStorage.setItem('pasarela:streams', text.replaceAll('"transport":"WS"', '"transport":"SSE"')),
      );
    });
    await page.reload();
    await page.locator('.wb-operation .view-line').first().waitFor();
    await until(async () => (await page.locator('.wb-dot.wb-live').count()) === 7);
    await play(page);
    await result(page, /"totalCount": \d+/);
    expect(await page.locator('.wb-notice').count()).toBe(0);
  });

  it('over SSE is named as a possible reason where the gateway does not answer, which may have another', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    // Without a connection the page waits for its answer until its patience is over.
    await page.route(
      (url) => url.pathname.endsWith('/workbench/session'),
      () => Promise.resolve(),
    );
    const notice = page.getByRole('alert');
    await notice.getByText('streams resume by themselves. If many streams over SSE are open').waitFor();
    await page.getByLabel('Transport').selectOption('WS');
    await notice.getByText(/streams resume by themselves\.$/).waitFor();
  });

  it('goes over SSE where a proxy passes no WebSocket on, also the third, for which the page chose one', async () => {
    await using proxy = await startProxy(demo.addresses.gateway);
    await using one = await visit(demo.browser, `${proxy.url}/graphql`);
    const { page } = one;
    await watchMoneyIn(page);
    for (const name of ['Second', 'Third']) {
      await playNew(page, name, RESUMING(name));
      await page.locator('.wb-status.wb-live').waitFor();
    }
    // More where the gateway took longer to answer than the page waits.
    const refused = proxy.refused();
    expect(refused).toBeGreaterThanOrEqual(2);
    expect(await page.getByLabel('Transport').inputValue()).toBe('SSE');
    await demo.credit('Tercera');
    await rows(page).first().waitFor();
    await page.waitForFunction(
      () => sessionStorage.getItem('pasarela:streams')?.match(/"live"/g)?.length === 3,
    );
    await page.reload();
    await page.locator('.wb-operation .view-line').first().waitFor();
    await until(async () => (await page.locator('.wb-dot.wb-live').count()) === 3);
    expect(proxy.refused()).toBeGreaterThanOrEqual(refused + 2);
    await demo.credit('Cuarta');
    await page.getByText('2 events', { exact: true }).waitFor();
  });

  it('goes over SSE where a proxy begins to pass no WebSocket on, also where one was open before', async () => {
    await using proxy = await startProxy(demo.addresses.gateway);
    proxy.passSockets();
    await using one = await visit(demo.browser, `${proxy.url}/graphql`);
    const { page } = one;
    await watchMoneyIn(page);
    for (const name of ['Second', 'Third']) {
      await playNew(page, name, RESUMING(name));
      await page.locator('.wb-status.wb-live').waitFor();
    }
    const transport = page.getByLabel('Transport');
    expect(await transport.inputValue()).toBe('WS');
    proxy.cutSockets();
    await until(async () => (await transport.inputValue()) === 'SSE');
    await page.locator('.wb-status.wb-live').waitFor();
    await demo.credit('Tercera');
    await rows(page).first().waitFor();
  });

  it('stays over the WebSocket that the page chose where the gateway has no seat for one', async () => {
    await using small = await startDemo({ LIMIT_STREAMS: '2' });
    await using one = await small.open();
    const { page } = one;
    let sockets = 0;
    page.on('websocket', () => {
      sockets += 1;
    });
    await watchMoneyIn(page);
    await playNew(page, 'Second', RESUMING('Second'));
    await page.locator('.wb-status.wb-live').waitFor();
    await playNew(page, 'Third', RESUMING('Third'));
    await until(() => sockets >= 3);
    await openTab(page, 'Second');
    await page.getByRole('button', { name: 'Stop the stream' }).click();
    await openTab(page, 'Third');
    await page.locator('.wb-status.wb-live').waitFor();
    expect(await page.getByLabel('Transport').inputValue()).toBe('WS');
  });

  it('goes over what a person chose, and not over what the page chose for another operation of its tab', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    for (const name of ['Second', 'Third']) {
      await playNew(page, name, RESUMING(name));
      await page.locator('.wb-status.wb-live').waitFor();
    }
    const transport = page.getByLabel('Transport');
    expect(await transport.inputValue()).toBe('WS');
    // Over a socket it would begin with now after a cut.
    await page.getByRole('button', { name: 'Stop the stream' }).click();
    await write(page, 'subscription Third { moneyIn { amount { amount currency } } }');
    await play(page);
    await page.locator('.wb-status.wb-live').waitFor();
    expect(await transport.inputValue()).toBe('SSE');
    // It stays cut for as long as the clock of the page stands.
    await stop(page);
    await deed(page, 'Cut');
    await page.locator('.wb-status.wb-cut').waitFor();
    await demo.credit('Durante');
    await page.clock.resume();
    await page.getByText('1 caught up: the gap is closed.').waitFor();
    expect(await rows(page).count()).toBe(1);
    await transport.selectOption('WS');
    await page.getByText('Reconnected.').waitFor();
    await page.getByRole('button', { name: 'Stop the stream' }).click();
    await play(page);
    await page.locator('.wb-status.wb-live').waitFor();
    expect(await transport.inputValue()).toBe('WS');
  });

  it('shows the gateway’s own error, and has ended at its end, also after another token was sent', async () => {
    await using one = await demo.open();
    const { page } = one;
    const sent: (string | undefined)[] = [];
    await changeAnswers(
      page,
      (url) => url.pathname.endsWith('/workbench/sandbox'),
      // The page reads it also by itself, and has to be refused under another one first.
      async (answer) => {
        const sandbox = await answer.json();
        return { json: sent.length < 2 ? sandbox : { ...sandbox, accessToken: 'the next' } };
      },
    );
    const error = (code: string) => ({ errors: [{ message: 'No.', extensions: { code } }] });
    const answers = [
      { status: 500, json: error('INTERNAL') },
      { status: 401, json: error('UNAUTHENTICATED') },
      { contentType: 'text/event-stream', body: 'event: complete\ndata:\n\n' },
    ];
    await page.route(
      (url) => url.pathname === '/graphql',
      (route) => {
        const { accept, authorization } = route.request().headers();
        if (accept !== 'text/event-stream') return route.fallback();
        sent.push(authorization);
        return route.fulfill(answers.shift() ?? {});
      },
    );
    await openTab(page, 'WatchMoneyIn');
    await play(page);
    await page.locator('.wb-status.wb-ended').waitFor();
    await page.locator('.wb-event .wb-badge', { hasText: 'INTERNAL' }).waitFor();
    await play(page);
    await page.locator('.wb-event .wb-badge', { hasText: 'UNAUTHENTICATED' }).waitFor();
    await page.locator('.wb-status.wb-ended').waitFor();
    expect(sent.slice(0, 2)).toHaveLength(2);
    expect(sent.slice(2)).toEqual(['Bearer the next']);
  });

  it('has ended once the gateway says that it is complete, also where it has told of a gap before', async () => {
    await using one = await demo.open();
    const { page } = one;
    const gap = { message: 'Gone.', extensions: { code: 'EVENTS_GAP', head: 'two' } };
    const answers = [
      'id: one\nevent: next\ndata: {"data":{"moneyIn":{"cursor":"one"}}}\n\n',
      `event: next\ndata: ${JSON.stringify({ errors: [gap] })}\n\nevent: complete\ndata:\n\n`,
      'event: complete\ndata:\n\n',
    ];
    const asked: unknown[] = [];
    await page.route(
      (url) => url.pathname === '/graphql',
      (route) => {
        const { accept, 'last-event-id': after } = route.request().headers();
        if (accept !== 'text/event-stream') return route.fallback();
        asked.push(after);
        return route.fulfill({ contentType: accept, body: answers.shift() ?? '' });
      },
    );
    await openTab(page, 'WatchMoneyIn');
    await play(page);
    await page.locator('.wb-status.wb-ended').waitFor();
    expect(asked).toEqual([undefined, 'one', 'two']);
  });

  it('comes back with longer and longer pauses where each connection is cut as it opens', async () => {
    await using one = await demo.open();
    const { page } = one;
    const asked: number[] = [];
    const five = Promise.withResolvers<void>();
    await page.route(
      (url) => url.pathname === '/graphql',
      (route) => {
        const { accept } = route.request().headers();
        if (accept !== 'text/event-stream') return route.fallback();
        if (asked.push(performance.now()) === 5) five.resolve();
        return route.fulfill({ contentType: accept, body: ':\n\n' });
      },
    );
    await openTab(page, 'WatchMoneyIn');
    await play(page);
    await five.promise;
    // The second comes at once; the pauses after it are half a second, one, and two.
    const [, second = 0, , , fifth = 0] = asked;
    expect(fifth - second).toBeGreaterThan(3_400);
  });

  it('is asked for again where the gateway says that it is about to end', async () => {
    await using one = await demo.open();
    const { page } = one;
    const draining = { message: 'It is about to end.', extensions: { code: 'DRAINING' } };
    const asked: string[] = [];
    await page.route(
      (url) => url.pathname === '/graphql',
      (route) => {
        const { accept } = route.request().headers();
        if (accept !== 'text/event-stream') return route.fallback();
        asked.push(accept);
        return asked.length === 1
          ? route.fulfill({ status: 503, json: { errors: [draining] } })
          : route.continue();
      },
    );
    await watchMoneyIn(page);
    await demo.credit('Después');
    await page.locator('.wb-says', { hasText: 'Después' }).waitFor();
    expect(await rows(page).count()).toBe(1);
    expect(asked).toHaveLength(2);
  });

  it.each([
    [
      'over HTTP, no sooner than after the pause that was asked for',
      (code: string) => ({
        status: 429,
        headers: { 'retry-after': '2' },
        json: { errors: [{ message: 'Later.', extensions: { code } }] },
      }),
      1_900,
    ],
    [
      'as it begins',
      (code: string) => ({
        contentType: 'text/event-stream',
        body: `event: next\ndata: ${JSON.stringify({ errors: [{ message: 'Later.', extensions: { code, retryable: true } }] })}\n\nevent: complete\ndata:\n\n`,
      }),
      400,
    ],
  ])('that is refused for now is asked for again, and tells so once: %s', async (_how, refusal, pause) => {
    await using one = await demo.open();
    const { page } = one;
    const asked: number[] = [];
    await page.route(
      (url) => url.pathname === '/graphql',
      (route) => {
        if (route.request().headers()['accept'] !== 'text/event-stream') return route.fallback();
        return asked.push(performance.now()) <= 3 ? route.fulfill(refusal('TOO_MANY')) : route.continue();
      },
    );
    await openTab(page, 'WatchMoneyIn');
    await play(page);
    await until(() => asked.length === 4);
    await page.locator('.wb-status.wb-live').waitFor();
    const [, second = 0, third = 0] = asked;
    expect(third - second).toBeGreaterThan(pause);
    await demo.credit('Después');
    await page.locator('.wb-says', { hasText: 'Después' }).waitFor();
    expect(await page.locator('.wb-event .wb-badge').allInnerTexts()).toEqual(['moneyIn', 'TOO_MANY']);
    expect(await page.locator('.wb-note').count()).toBe(0);
  });

  it('stays cut for as long as its button says once, and comes back at once from the next loss', async () => {
    await using one = await demo.open();
    const { page } = one;
    await page.evaluate(() => {
      const paused: unknown[] = [];
      const { setTimeout } = window;
      const noting = (work: TimerHandler, ms?: number, ...more: unknown[]): number => {
        if (ms === 3_000) paused.push(ms);
        return setTimeout(work, ms, ...more);
      };
      Object.assign(window, { paused, setTimeout: noting });
    });
    await watchMoneyIn(page);
    let asked = 0;
    await page.route(
      (url) => url.pathname === '/graphql',
      (route) => {
        const { accept } = route.request().headers();
        if (accept !== 'text/event-stream') return route.fallback();
        asked += 1;
        return asked === 1 ? route.fulfill({ contentType: accept, body: ':\n\n' }) : route.continue();
      },
    );
    await deed(page, 'Cut');
    await until(() => asked === 2);
    await page.locator('.wb-status.wb-live').waitFor();
    expect(await page.evaluate(() => Reflect.get(window, 'paused'))).toEqual([3_000]);
  });

  it('and the page go on after the gateway was started again, without a reload', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    await demo.credit('Antes');
    await rows(page).first().waitFor();
    await demo.kill();
    await page.getByText('The gateway does not answer.').waitFor();
    await demo.start();
    await page.getByText('The gateway was restarted.').waitFor();
    await page.locator('.wb-status.wb-live').waitFor();
    await demo.credit('Después');
    await page.locator('.wb-says', { hasText: 'Después' }).waitFor();
    await openTab(page, 'Instruments');
    await play(page);
    await result(page, /"totalCount": \d+/);
  });

  it('that was played while the gateway was away comes over the WebSocket that the page chose', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    await playNew(page, 'Second', RESUMING('Second'));
    await page.locator('.wb-status.wb-live').waitFor();
    await demo.kill();
    await page.getByText('The gateway does not answer.').waitFor();
    await playNew(page, 'Third', RESUMING('Third'));
    await page.locator('.wb-status.wb-cut').waitFor();
    await demo.start();
    await page.locator('.wb-status.wb-live').waitFor();
    expect(await page.getByLabel('Transport').inputValue()).toBe('WS');
  });
});
