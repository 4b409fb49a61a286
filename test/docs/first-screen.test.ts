import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { control } from '../helpers/gateway.ts';
import { folder, installWithClient, run } from '../helpers/packages.ts';
import { type RestartableGateway, startRestartable } from '../helpers/restartable.ts';
import { compile } from './client-pages.ts';
import { Client } from './page-program.ts';
import { presses } from './screens.ts';

const PACKAGES = 'test/clients';

let gateway: RestartableGateway;
let work: string;
beforeAll(async () => {
  await installWithClient(PACKAGES);
  gateway = await startRestartable();
  work = await mkdtemp(folder(`${PACKAGES}/run-`));
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  if (work !== undefined) await rm(work, { recursive: true, force: true });
});

const tells = (screen: Client, text: string) =>
  expect.poll(async () => (await screen.kept()).join()).toContain(text);

/** Stands in for the session of the page, whose backend is an app's own. */
const sessionFile = (graphql = gateway.graphql) => `export const session = {
  graphql: '${graphql}',
  token: async () => (await (await fetch('${gateway.sandbox.url}/sandbox')).json()).accessToken,
};`;
it('the whole first screen shows credits, pays, says what is unknown, and where credits are missing', async () => {
  await compile(work, 'nodenext', { noEmit: false, rootDir: '.', outDir: work });
  await writeFile(join(work, 'session.js'), sessionFile());
  const { centralizing, clabeInstrumentIds } = gateway.sandbox;
  const input = {
    sourceInstrumentId: centralizing.instrumentId,
    destinationInstrumentId: clabeInstrumentIds[1],
    externalReference: '1234567',
  };
  const steps = [
    ['Live.', 'Verify the account'],
    ['It may have happened', 'Ask again', 'nothing has moved'],
    ['It may have happened', 'The provider says that nothing has moved'],
    ['Live.', 'Verify the account'],
    ['The receipt is on its way.', '', 'OK'],
    ['The account belongs to', 'OK'],
    ['a credit', ''],
    ['Some credits are missing here.', ''],
  ] as const;
  const fault = {
    match: { method: 'POST', path: '/v1/transactions/penny_validation' },
    fault: 'reset-after-commit',
    times: 1,
  };
  await control(gateway.sandbox, 'POST', '/sandbox/faults', fault);
  // After five seconds the gateway looks by itself for a payment that is unknown, and finds it by what is told of its receipt.
  await control(gateway.sandbox, 'POST', '/sandbox/lost-messages', { type: 'CEP' });
  await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 0 });
  await writeFile(join(work, 'first-screen-runner.js'), presses(input, steps));
  const screen = new Client('first-screen-runner', work);
  try {
    await screen.start();
    await tells(screen, 'The receipt is on its way.');
    await control(gateway.sandbox, 'DELETE', '/sandbox/lost-messages');
    await control(gateway.sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 600 });
    await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 60 });
    await tells(screen, 'The account belongs to');
    await gateway.credit('a credit');
    await tells(screen, 'a credit');
    await gateway.allDelivered();
    await gateway.kill();
    await gateway.loseLog();
    await gateway.start();
    await tells(screen, steps.map(([text]) => text).join('\n'));
  } finally {
    await screen.kill();
  }
});

/** Where a receipt is not shown at first: how long the screen waits before it asks again, and what it shows. */
const NOT_SHOWN = {
  'once the person asks': {
    pause: '60_000',
    steps: [
      ['', 'Verify the account'],
      ['How it ended is not known yet', 'Ask later', 'OK'],
      ['You have not seen how', 'Verify the account'],
      ['The account belongs to', 'OK'],
    ],
  },
  'by itself': {
    pause: '500',
    steps: [
      ['', 'Verify the account'],
      ['How it ended is not known yet', '', 'OK'],
      ['The account belongs to', 'OK'],
    ],
  },
} as const;
it.each(Object.entries(NOT_SHOWN))(
  'the whole first screen follows a payment anew whose receipt was not shown: %s',
  async (_, { pause, steps }) => {
    const inside = await mkdtemp(join(work, 'untold-'));
    const sent: string[] = [];
    const refused = { errors: [{ message: 'Not shown.', extensions: { code: 'BAD_USER_INPUT' } }] };
    const cep = { status: 'COMPLETED', final: true, beneficiaryName: 'Ana' };
    const receipt = {
      data: { cepStatus: { __typename: 'CepUpdate', kind: 'SNAPSHOT', transactionId: 'one', cep } },
    };
    const success = { __typename: 'CreatePennyValidationSuccess', transaction: { id: 'one' } };
    const server = new WebSocketServer({ port: 0, handleProtocols: () => 'graphql-transport-ws' });
    server.on('connection', (connection) =>
      connection.on('message', (message) => {
        const { type, id, payload } = JSON.parse(String(message));
        if (type === 'connection_init') connection.send('{"type":"connection_ack"}');
        const [field] = /cepStatus|createPennyValidation/.exec(payload?.query) ?? [];
        if (type !== 'subscribe' || field === undefined) return;
        const isFirst = !sent.includes(field);
        sent.push(field);
        const answer = field === 'cepStatus' ? (isFirst ? refused : receipt) : { data: { [field]: success } };
        connection.send(JSON.stringify({ type: 'next', id, payload: answer }));
        connection.send(JSON.stringify({ type: 'complete', id }));
      }),
    );
    await once(server, 'listening');
    await compile(work, 'nodenext', { noEmit: false, rootDir: '.', outDir: inside }, (code) =>
      code.replace('60_000', pause),
    );
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
    await writeFile(join(inside, 'session.js'), sessionFile(address));
    await writeFile(join(inside, 'runner.js'), presses({}, steps));
    const screen = new Client('runner', inside);
    try {
      await screen.start();
      await tells(screen, steps.map(([text]) => text).join('\n'));
      expect(sent).toEqual(['createPennyValidation', 'cepStatus', 'cepStatus']);
    } finally {
      await screen.kill();
      server.close();
    }
  },
);

it('the whole first screen lets go of no payment that may still be made', async () => {
  const inside = await mkdtemp(join(work, 'cut-'));
  const server = new WebSocketServer({ port: 0, handleProtocols: () => 'graphql-transport-ws' });
  server.on('connection', (connection) =>
    connection.on('message', (data) => {
      if (String(data).includes('connection_init')) connection.send('{"type":"connection_ack"}');
      // It was read before.
      else connection.close(4409);
    }),
  );
  await once(server, 'listening');
  await compile(work, 'nodenext', { noEmit: false, rootDir: '.', outDir: inside });
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  await writeFile(join(inside, 'session.js'), sessionFile(address));
  const steps = [['It may have happened', 'Ask again', 'nothing has moved']] as const;
  await writeFile(join(inside, 'runner.js'), presses({}, [['', 'Verify the account'], ...steps, ...steps]));
  const screen = new Client('runner', inside);
  try {
    await screen.start();
    await tells(screen, 'may have happened\nIt may have happened');
  } finally {
    await screen.kill();
    server.close();
  }
});

it('the whole first screen sends a payment no more once it has gone', async () => {
  const inside = await mkdtemp(join(work, 'gone-'));
  let sent = 0;
  const server = new WebSocketServer({ port: 0, handleProtocols: () => 'graphql-transport-ws' });
  server.on('connection', (connection) =>
    connection.on('message', (message) => {
      const text = String(message);
      if (text.includes('connection_init')) connection.send('{"type":"connection_ack"}');
      if (!text.includes('createPennyValidation')) return;
      sent += 1;
      // It may have been made: the client asks again.
      connection.close(1012);
    }),
  );
  await once(server, 'listening');
  await compile(work, 'nodenext', { noEmit: false, rootDir: '.', outDir: inside });
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  await writeFile(join(inside, 'session.js'), sessionFile(address));
  const leaves = `${presses({}, [['', 'Verify the account']])}
setInterval(() => {
  if (!String(values.get('payments of ana')).includes('"unanswered":1')) return;
  tree.unmount();
  // Two seconds hold several pauses of a payment that goes on.
  setTimeout(() => process.exit(), 2_000);
}, 5);`;
  await writeFile(join(inside, 'runner.js'), leaves);
  try {
    await run(process.execPath, [join(inside, 'runner.js')], inside);
    expect(sent).toBeLessThanOrEqual(1);
  } finally {
    server.close();
  }
});

it('the whole first screen is drawn where the browser blocks storage, and says that nothing was sent', async () => {
  const inside = await mkdtemp(join(work, 'blocked-'));
  await compile(work, 'nodenext', { noEmit: false, rootDir: '.', outDir: inside });
  await writeFile(join(inside, 'session.js'), sessionFile());
  const steps = [
    ['Nothing can be kept here', 'Verify the account'],
    ['This press has sent nothing', ''],
  ] as const;
  const blocked = presses({}, steps).replace(
    '{ value: localStorage }',
    "{ get() { throw new Error('It is blocked.'); } }",
  );
  await writeFile(join(inside, 'runner.js'), blocked);
  const screen = new Client('runner', inside);
  try {
    await screen.start();
    await tells(screen, steps.map(([text]) => text).join('\n'));
  } finally {
    await screen.kill();
  }
});

it('the button of the whole first screen waits until what was begun is on it', async () => {
  const inside = await mkdtemp(join(work, 'begun-'));
  await compile(work, 'nodenext', { noEmit: false, rootDir: '.', outDir: inside });
  await writeFile(join(inside, 'session.js'), sessionFile());
  const begun = {
    idempotencyKey: 'begun-before',
    mutation: 'createPennyValidation',
    input: {},
    createdAt: '2026-11-01T12:00:00.000Z',
    unanswered: 1,
  };
  const slow = presses({}, []).replace(
    'getItem: (key) =>',
    `getItem: (key) => key === 'payments of ana' ? begun.promise :`,
  );
  const told = `const verify = () => tree.root.findAllByType('button').find(({ props }) => props.children === 'Verify the account');
console.log(verify().props.disabled);
begun.resolve('[${JSON.stringify(begun)}]');
setInterval(() => {
  if (verify().props.disabled) return;
  // It is four weeks old: to ask for it may pay.
  console.log(/We are finding out.*Send it if it was not made/.test(JSON.stringify(tree.toJSON())));
  process.exit();
}, 5);`;
  await writeFile(join(inside, 'runner.js'), `const begun = Promise.withResolvers();\n${slow}\n${told}`);
  const output = await run(process.execPath, [join(inside, 'runner.js')], inside);
  expect(output.split('\n').slice(-3)).toEqual(['true', 'true', '']);
});

it('the whole first screen shows a refusal that nobody has seen before anything can be sent', async () => {
  const inside = await mkdtemp(join(work, 'refused-'));
  await compile(work, 'nodenext', { noEmit: false, rootDir: '.', outDir: inside });
  await writeFile(join(inside, 'session.js'), sessionFile());
  const refused = {
    idempotencyKey: 'refused-before',
    mutation: 'createPennyValidation',
    input: {},
    createdAt: new Date(Date.now() - 2 * 3_600_000).toISOString(),
    unanswered: 1,
    result: { __typename: 'PreconditionError', code: 'INSUFFICIENT_FUNDS', message: 'Too little.' },
  };
  const steps = [
    ['You have not seen how', 'Show it'],
    ['Nothing has moved', 'OK'],
    ['Verify the account', ''],
  ] as const;
  const kept = JSON.stringify([['payments of ana', JSON.stringify([refused])]]);
  const runner = presses({}, steps).replace('new Map()', () => `new Map(${kept})`);
  const watch = `
const verify = () => tree.root.findAllByType('button').find(({ props }) => props.children === 'Verify the account');
console.log(verify().props.disabled);
setInterval(() => {
  if (steps.length > 0 || verify().props.disabled) return;
  console.log('free');
  process.exit();
}, 20);`;
  await writeFile(join(inside, 'runner.js'), runner + watch);
  const output = await run(process.execPath, [join(inside, 'runner.js')], inside);
  expect(output).toContain(`true\n${steps.map(([text]) => text).join('\n')}\nfree\n`);
});

it('two tabs with the whole first screen pay a form once, also where the one has shown the end that the other still asks for', async () => {
  const inside = await mkdtemp(join(work, 'two-'));
  const keys = new Set<string>();
  const server = new WebSocketServer({ port: 0, handleProtocols: () => 'graphql-transport-ws' });
  server.on('connection', (connection) =>
    connection.on('message', (message) => {
      const { type, id, payload } = JSON.parse(String(message));
      if (type === 'connection_init') connection.send('{"type":"connection_ack"}');
      const [field] = /cepStatus|createPennyValidation|payment\(/.exec(payload?.query) ?? [];
      if (type !== 'subscribe' || field === undefined) return;
      const isFirst = keys.size === 0;
      if (field === 'createPennyValidation') keys.add(payload.variables.input.idempotencyKey);
      const data = {
        'payment(': { payment: { state: 'DONE' } },
        createPennyValidation: {
          createPennyValidation: isFirst
            ? { __typename: 'OutcomeUnknown', message: 'Nobody knows.', safeToRetry: false, retryUntil: null }
            : { __typename: 'CreatePennyValidationSuccess', transaction: { id: 'one' } },
        },
        cepStatus: {
          cepStatus: {
            __typename: 'CepUpdate',
            kind: 'SNAPSHOT',
            transactionId: 'one',
            cep: { status: 'COMPLETED', final: true, beneficiaryName: 'Ana' },
          },
        },
      }[field];
      connection.send(JSON.stringify({ type: 'next', id, payload: { data } }));
      connection.send(JSON.stringify({ type: 'complete', id }));
    }),
  );
  await once(server, 'listening');
  await compile(work, 'nodenext', { noEmit: false, rootDir: '.', outDir: inside });
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  await writeFile(join(inside, 'session.js'), sessionFile(address));
  const drive = `
const draw = () => create(createElement(FirstScreen, { person: 'ana', open }));
const shows = (of, text) => JSON.stringify(of.toJSON()).includes(text);
const until = (check) => new Promise((resolve) => {
  const timer = setInterval(() => {
    const found = check();
    if (!found) return;
    clearInterval(timer);
    resolve(found);
  }, 5);
});
const press = async (of, text, name) => {
  const button = await until(() => shows(of, text) && of.root.findAllByType('button').find(({ props }) => props.children === name && !props.disabled));
  button.props.onClick();
};
await press(tree, '', 'Verify the account');
await until(() => shows(tree, 'It may have happened'));
// The page is loaded anew, and opened in another tab.
tree.unmount();
const [one, two] = [draw(), draw()];
await until(() => shows(one, 'We are finding out'));
await press(two, 'We are finding out', 'Ask again');
await press(two, 'The account belongs to', 'OK');
// Its form has opened anew once the end was seen.
await until(() => !shows(two, 'The account belongs to'));
await press(one, 'We are finding out', 'Verify the account');
const told = await until(() => ['The form has opened anew', 'The account belongs to'].find((text) => shows(one, text)));
console.log(told);
process.exit();`;
  await writeFile(join(inside, 'runner.js'), presses({}, []) + drive);
  try {
    const output = await run(process.execPath, [join(inside, 'runner.js')], inside);
    expect(keys.size).toBe(1);
    expect(output).toContain('The form has opened anew');
  } finally {
    server.close();
  }
});

it('the session of a page asks its backend each time, and tells a browser that is signed out from a backend that fails, and takes no token of another person', async () => {
  const inside = await mkdtemp(join(work, 'session-'));
  await compile(work, 'nodenext', { noEmit: false, rootDir: '.', outDir: inside });
  await writeFile(
    join(inside, 'runner.js'),
    `globalThis.location = { origin: 'https://app.example' };
const told = (accessToken, person) => [200, { accessToken, person }];
const answers = [told('one', 'ana'), [503, {}], [401, {}], told('two', 'ana'), told('three', 'luis'), told('four', 'ana')];
globalThis.fetch = async (address, { method, body }) => {
  console.log(method, address, body);
  const [status, content] = answers.shift();
  return Response.json(content, { status });
};
const { session, sessionEvents } = await import('./session.js');
console.log(session.graphql);
sessionEvents.addEventListener('signed out', () => console.log('show the sign-in'));
const { signal } = new AbortController();
for (const fresh of [false, true, false, false, false, false]) await session.token({ fresh, signal }).then(console.log, ({ message }) => console.log(message));
console.log(session.person);`,
  );
  expect(await run(process.execPath, [join(inside, 'runner.js')], inside)).toBe(
    [
      'https://app.example/graphql',
      'POST /session/token {"fresh":false}',
      'one',
      'POST /session/token {"fresh":true}',
      '/session/token answered 503.',
      'POST /session/token {"fresh":false}',
      'show the sign-in',
      '/session/token answered 401.',
      'POST /session/token {"fresh":false}',
      'two',
      'POST /session/token {"fresh":false}',
      'show the sign-in',
      'Somebody else has signed in: load the page anew.',
      'POST /session/token {"fresh":false}',
      'four',
      'ana',
      '',
    ].join('\n'),
  );
});
