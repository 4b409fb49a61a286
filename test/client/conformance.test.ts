import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCases, TRANSPORTS, type Transport } from '../../conformance/case.ts';
import { play } from '../../conformance/play.ts';
import { startProgram } from '../../conformance/program.ts';
import { type Arrival, startServer } from '../../conformance/server.ts';
import { readPage } from '../docs/pages.ts';
import { folder, run } from '../helpers/packages.ts';

const PYTHON = folder('conformance/clients/python.py');
const JAVASCRIPT = folder('conformance/clients/javascript.ts');
const built = await mkdtemp(join(tmpdir(), 'pasarela-conformance-'));
const GO = join(built, 'client');
beforeAll(async () => {
  await run('go', ['build', '-o', GO, folder('conformance/clients/go.go')], built);
});
afterAll(() => rm(built, { recursive: true }));

const CLIENTS = [
  { name: '@pasarela/client', command: [process.execPath, JAVASCRIPT], transports: TRANSPORTS },
  { name: 'the client in Python', command: ['python3', PYTHON], transports: ['sse'] },
  { name: 'the client in Go', command: [GO], transports: ['sse'] },
] as const;
/** Longer than the suite waits for a client. */
const LONG = { timeout: 300_000 };

const cases = await readCases();
const madeAt = new Date().toISOString();

it('PROTOCOL.md lists the rules that no case tries', async () => {
  const page = await readPage('PROTOCOL.md');
  const tried = new Set(cases.flatMap(({ rules }) => rules));
  const rules = [...page.matchAll(/^\| ([A-Z]\d+) \|/gm)].map(([, rule = '']) => rule);
  expect(page).toContain(`from outside: ${rules.filter((rule) => !tried.has(rule)).join(', ')}.`);
});

it('every case has a name of its own, and names rules of PROTOCOL.md', async () => {
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  const rules = new Set(
    [...(await readPage('PROTOCOL.md')).matchAll(/^\| ([A-Z]\d+) \|/gm)].map(([, rule]) => rule),
  );
  expect(cases.flatMap((one) => one.rules).filter((rule) => !rules.has(rule))).toEqual([]);
});

for (const { name, command, transports } of CLIENTS) {
  for (const transport of transports) {
    describe(`${name} over ${transport}`, () => {
      const played = cases.filter((one) => one.transports.includes(transport));
      it.concurrent.for(played)('$name', LONG, async (one, context) => {
        context.expect(await play(one, transport, command)).toBeUndefined();
      });
    });
  }
}

/** A payment of which each call was answered that it has moved nothing, as each client keeps it. */
const READY = {
  '@pasarela/client': [
    {
      idempotencyKey: 'a key of its own',
      mutation: 'createMoneyOut',
      input: {},
      createdAt: madeAt,
      unanswered: 0,
    },
  ],
  'the client in Python': {
    key: 'a key of its own',
    input: {},
    made: Date.parse(madeAt) / 1_000,
    calls: 0,
    says: {},
  },
  'the client in Go': { Input: { idempotencyKey: 'a key of its own' }, Made: madeAt, Calls: 0, Says: null },
};

for (const { name, command } of CLIENTS)
  it(`${name} sends nothing at its start of a payment that has moved nothing`, LONG, async () => {
    const store = join(await mkdtemp(join(built, 'store-')), 'store');
    await writeFile(store, JSON.stringify(READY[name]));
    const sent: Arrival[] = [];
    const server = await startServer((arrival) => sent.push(arrival));
    const query = 'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename } }';
    const given = {
      do: 'pay',
      url: server.url,
      transport: 'sse',
      query,
      store,
      tokens: ['first'],
      input: {},
    };
    await using program = startProgram(command, given);
    const { lines, ended } = program;
    try {
      expect(await Promise.race([lines.next(), ended.then(() => program.complaint())])).toEqual({
        ready: true,
      });
      await ended;
      expect(sent).toEqual([]);
    } finally {
      server.close();
    }
  });

it('a payment may be POSTed also where streams go over a socket', LONG, async () => {
  for (const one of cases.filter(({ command }) => command.do === 'pay').slice(0, 1))
    expect(await play(one, 'websocket', ['python3', PYTHON])).toBeUndefined();
});

it('a client that sends over its socket what is no message loses the socket, and the suite goes on', async () => {
  const server = await startServer(() => {});
  try {
    for (const [text, code] of [
      ['hello', 4400],
      ['null', 1000],
    ] as const) {
      const socket = new WebSocket(server.url.replace('http', 'ws'), 'graphql-transport-ws');
      const closed = new Promise<CloseEvent>((resolve) => socket.addEventListener('close', resolve));
      socket.addEventListener('open', () => {
        socket.send(text);
        if (code === 1000) socket.close(code);
      });
      expect(await closed).toMatchObject({ code });
    }
  } finally {
    server.close();
  }
});

/** Short times in the place of those of the client in Go, of the answers to a request and of the silence of a stream. */
const SHORT = [
  ['AfterFunc(35*time.Second', 'AfterFunc(400*time.Millisecond'],
  ['Reset(30 * time.Second)', 'Reset(400 * time.Millisecond)'],
] as const;

it(
  'the client in Go goes on where eventCursor cannot be read for longer than a stream may be silent',
  LONG,
  async () => {
    let text = await readFile(folder('conformance/clients/go.go'), 'utf8');
    for (const [from, to] of SHORT) {
      expect(text.split(from), from).toHaveLength(2);
      text = text.replace(from, to);
    }
    const work = await mkdtemp(join(built, 'hasty-'));
    await writeFile(join(work, 'client.go'), text);
    await run('go', ['build', '-o', join(work, 'client'), join(work, 'client.go')], work);
    const next = (body: object) => `event: next\ndata: ${JSON.stringify(body)}\n\n`;
    const failed = (code: string) => ({
      errors: [{ message: 'Played.', extensions: { code, retryable: true } }],
    });
    const begun = performance.now();
    const server = createServer(async (request, response) => {
      const { query, variables } = JSON.parse(await readText(request));
      const isAway = performance.now() - begun < 1_500;
      if (query.startsWith('subscription')) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        if (variables.after === 'old')
          response.end(`${next(failed('CURSOR_INVALID'))}event: complete\ndata: \n\n`);
        else setTimeout(() => response.write(next({ data: { moneyIn: { cursor: 'a' } } })), 300);
      } else
        response.end(
          JSON.stringify(isAway ? failed('STORE_UNAVAILABLE') : { data: { eventCursor: 'head' } }),
        );
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    // It listens on a port.
    const { port } = server.address() as AddressInfo;
    const given = {
      do: 'follow',
      url: `http://127.0.0.1:${port}/graphql`,
      query: 'subscription ($after: Cursor) { moneyIn(after: $after) { cursor } }',
      saved: 'old',
      tokens: ['first'],
    };
    await using program = startProgram([join(work, 'client')], given);
    const { lines, ended } = program;
    try {
      const says = () => Promise.race([lines.next(), ended.then(() => program.complaint())]);
      expect(await says()).toEqual({ gap: 'CURSOR_INVALID' });
      for (let streams = 0; streams < 4; streams += 1) expect(await says()).toEqual({ event: 'a' });
    } finally {
      server.close();
      server.closeAllConnections();
    }
  },
);

interface Mutant {
  readonly rule: string;
  /** What is written in the place of what. */
  readonly edits: readonly (readonly [from: string, to: string])[];
  /** What a case of the rule says of it. */
  readonly found: string;
}

const ENDED = 'The client has ended.';

/** What breaks a rule in the client in Python, and as what that shows. */
const MUTANTS: readonly Mutant[] = [
  {
    rule: 'C4',
    edits: [['command.get("saved") or read_head()', 'command.get("saved")']],
    found: 'the client sends subscribe after null',
  },
  {
    rule: 'C4',
    edits: [
      ['command.get("saved") or read_head()', 'command.get("saved")'],
      ['{"after": cursor}', '{"after": cursor or read_head()}'],
    ],
    found: 'the client sends eventCursor',
  },
  {
    rule: 'C4',
    edits: [['if head is not None:', 'if answer.get("data"):']],
    found: 'the client sends subscribe after null',
  },
  {
    rule: 'B3',
    edits: [['say(event=cursor)', 'say(event=cursor); say(live=True)']],
    found: 'the client says {"live":true}',
  },
  {
    rule: 'B5',
    edits: [['cursor = block["id"]', 'pass']],
    found: 'the client sends subscribe after "b"',
  },
  {
    rule: 'R1',
    edits: [['{"after": cursor}', '{"after": command.get("saved")}']],
    found: 'the client sends subscribe after "start"',
  },
  {
    rule: 'R2',
    edits: [
      ['tokens = command["tokens"]', 'tokens = command["tokens"]\nlast = {}'],
      ['"Accept": accept}', '"Accept": accept, **last}'],
      ['say(event=cursor)', 'say(event=cursor); last["Last-Event-ID"] = cursor'],
    ],
    found: 'the client sends subscribe after "a"',
  },
  {
    rule: 'R3',
    edits: [['cursor = extensions.get("oldest") or read_head()', 'pass']],
    found: 'the client sends subscribe after "a"',
  },
  {
    rule: 'R4',
    edits: [['("EVENTS_GAP", "CURSOR_INVALID")', '("EVENTS_GAP",)']],
    found: 'the client sends subscribe after "of another log"',
  },
  { rule: 'R5', edits: [['say(gap=code)', 'pass']], found: 'the client says {"event":"b"}' },
  {
    rule: 'T3',
    edits: [['tokens.pop(0)', 'pass']],
    found: 'the client shows the token first',
  },
  {
    rule: 'T4',
    edits: [
      [
        'least = max(least, asked)\n                    if code in ("EVENTS_GAP"',
        'cursor = "start" if code == "UNAUTHENTICATED" else cursor\n                    if code in ("EVENTS_GAP"',
      ],
    ],
    found: 'the client sends subscribe after "start"',
  },
  {
    rule: 'E1',
    edits: [
      ['        pause(tries, least)\n        tries += 1\n\n\ndef kept', '        return\n\n\ndef kept'],
    ],
    found: ENDED,
  },
  {
    rule: 'E2',
    edits: [['least = least_of(response)\n                stream', 'return\n                stream']],
    found: ENDED,
  },
  {
    rule: 'E3',
    edits: [
      ['FINAL = {', 'FINAL = {"STORE_UNAVAILABLE", '],
      ['elif code in FINAL and not extensions.get("retryable"):', 'elif code in FINAL:'],
    ],
    found: ENDED,
  },
  {
    rule: 'E4',
    edits: [
      [
        'return say(refused=code)\n                elif block',
        'say(refused=code)\n                elif block',
      ],
    ],
    found: 'the client says {"sends":"subscribe after',
  },
  {
    rule: 'E4',
    edits: [['sys.exit(say(refused=code))', 'say(refused=code)']],
    found: 'the client says {"sends":"eventCursor"}',
  },
  {
    rule: 'E5',
    edits: [
      [
        '                elif block.get("id") and',
        '                elif block.get("event") == "complete":\n                    return\n                elif block.get("id") and',
      ],
    ],
    found: ENDED,
  },
  {
    rule: 'E8',
    edits: [
      ['FINAL = {', 'FINAL = {"DRAINING", '],
      [
        'if code in FINAL and not extensions.get("retryable"):\n                    refusal',
        'if code in FINAL:\n                    refusal',
      ],
    ],
    found: ENDED,
  },
  {
    rule: 'E9',
    edits: [['        pause(tries, least)\n        tries += 1\n\n\ndef kept', '        pass\n\n\ndef kept']],
    found: 'the client comes back after',
  },
  {
    rule: 'E10',
    edits: [
      ['least = max(least, asked)\n                    if code in ("EVENTS_GAP"', 'if code in ("EVENTS_GAP"'],
    ],
    found: 'the client comes back after',
  },
  {
    rule: 'E10',
    edits: [['least = least_of(response)\n            answer = json.loads', 'answer = json.loads']],
    found: '{"expect":"eventCursor","noSoonerThanMs":1000}: the client comes back after',
  },
  {
    rule: 'E10',
    edits: [['least = least_of(response)\n            answer = json.load(', 'answer = json.load(']],
    found: '{"expect":"mutation","noSoonerThanMs":1000}: the client comes back after',
  },
  {
    rule: 'S5',
    edits: [['extensions = (answer.get("errors") or [{}])[0].get("extensions") or {}', 'extensions = {}']],
    found: 'the client comes back after',
  },
  {
    rule: 'S6',
    edits: [['say(event=cursor)', 'say(refused="PART") if result.get("errors") else say(event=cursor)']],
    found: 'the client says {"refused":"PART"}',
  },
  {
    rule: 'E11',
    edits: [['sys.exit(say(refused=str(response.status)))', 'pass']],
    found: 'the client says {"sends":"subscribe after',
  },
  { rule: 'P2', edits: [['"key": str(uuid.uuid4())', '"key": "short"']], found: 'the key is short' },
  {
    rule: 'P2',
    edits: [
      ['payment = kept()', 'payment = None'],
      ['    os.replace(', '    0 and os.replace('],
    ],
    found: 'the client repeats with another key',
  },
  {
    rule: 'P3',
    edits: [['"idempotencyKey": payment["key"]', '"idempotencyKey": str(uuid.uuid4())']],
    found: 'the client repeats with another key',
  },
  {
    rule: 'P4',
    edits: [
      [
        'except BROKEN:\n            pass\n        if refusal',
        'except BROKEN:\n            payment["key"] = str(uuid.uuid4())\n        if refusal',
      ],
    ],
    found: 'the client repeats with another key',
  },
  {
    rule: 'P4',
    edits: [['code in MOVED_NOTHING', 'code not in (None, "INTERNAL")']],
    found: 'the client says {"refused":"FORBIDDEN"}',
  },
  {
    rule: 'P4',
    edits: [['elif result.get("code") == "IDEMPOTENCY_KEY_REUSED":', 'elif result.get("code") == "":']],
    found: 'the client says {"refused":"IDEMPOTENCY_KEY_REUSED"}',
  },
  {
    rule: 'P5',
    edits: [
      [
        '**payment["input"], "idempotencyKey"',
        '**payment["input"], "amount": float(payment["input"]["amount"]), "idempotencyKey"',
      ],
    ],
    found: 'the input is {"amount":1250,',
  },
  {
    rule: 'P7',
    edits: [['if refusal and payment["calls"] == 0:', 'if is_final or refusal and payment["calls"] == 0:']],
    found: 'the client says {"refused":"FORBIDDEN"}',
  },
  {
    rule: 'P9',
    edits: [['return keep(payment, refused=refusal)', 'keep(payment, refused=refusal)']],
    found: 'the client says {"sends":"mutation"}',
  },
  {
    rule: 'P9',
    edits: [
      ['if refusal and payment["calls"] == 0:', 'if refusal and (payment["calls"] == 0 or not is_final):'],
    ],
    found: ENDED,
  },
  {
    rule: 'P11',
    edits: [['if result is None:', 'if answer.get("errors"):']],
    found: 'the client says {"sends":"mutation"}',
  },
  {
    rule: 'P11',
    edits: [['not was_executed and code', 'code']],
    found: 'the client says {"refused":"FORBIDDEN"}',
  },
  {
    rule: 'P10',
    edits: [
      [
        'if code in FINAL and not extensions.get("retryable"):\n                    refusal',
        'if code:\n                    refusal',
      ],
    ],
    found: ENDED,
  },
  {
    rule: 'P14',
    edits: [
      ['payment["calls"] += 1\n        keep(payment)\n', 'keep(payment)\n        payment["calls"] += 1\n'],
      ['is_kept = payment is not None', 'is_kept = False'],
    ],
    found: 'the client says {"refused":"FORBIDDEN"}',
  },
  {
    rule: 'P15',
    edits: [['if payment["says"]:', 'if "unknown" in payment["says"]:']],
    found: 'the client says {"sends":"mutation"}',
  },
  {
    rule: 'P15',
    edits: [
      ['if payment is None:', 'if payment is None or "refused" in payment["says"]:'],
      ['is_kept = payment is not None', 'is_kept = False'],
    ],
    found: 'step 6, {"client":{"refused":"INSUFFICIENT_FUNDS"}}: the client says {"sends":"mutation"}',
  },
];

/** What a client does in all cases of a rule over a transport. */
async function tried(rule: string, transport: Transport, command: readonly string[]): Promise<string> {
  const told = [];
  for (const one of cases.filter(
    ({ rules, transports }) => rules.includes(rule) && transports.includes(transport),
  ))
    told.push(await play(one, transport, command));
  return told.join('\n');
}

it.concurrent.for(MUTANTS)(
  'a client that breaks $rule is found out',
  LONG,
  async (mutant, { expect: be }) => {
    let text = await readFile(PYTHON, 'utf8');
    for (const [from, to] of mutant.edits) {
      be(text.split(from), from).toHaveLength(2);
      text = text.replace(from, to);
    }
    const work = await mkdtemp(join(tmpdir(), 'pasarela-conformance-'));
    try {
      const program = join(work, 'client.py');
      await writeFile(program, text);
      be(await tried(mutant.rule, 'sse', ['python3', program])).toContain(mutant.found);
    } finally {
      await rm(work, { recursive: true });
    }
  },
);

/** Takes the bookmarks of any stream for those of its own. */
const BREAKS_B1 = `const { send } = WebSocket.prototype;
const { parse } = JSON;
let own = '';
WebSocket.prototype.send = function (text) {
  own = /"id":"([^"]+)".*"query":"subscription/.exec(text)?.[1] ?? own;
  return send.call(this, text);
};
JSON.parse = (text, reviver) => parse(String(text).replace('of nobody', own), reviver);`;

it('a client that breaks B1 is found out', LONG, async () => {
  const broken = [`--import=data:text/javascript,${encodeURIComponent(BREAKS_B1)}`, JAVASCRIPT];
  expect(await tried('B1', 'websocket', [process.execPath, ...broken])).toContain(
    'the client says {"live":true}',
  );
});

/** Takes each end of a connection for one of the network. */
const BREAKS_E11 = `Object.defineProperty(CloseEvent.prototype, 'code', { get: () => 1006 });`;

it('a client that breaks E11 is found out', LONG, async () => {
  const broken = [`--import=data:text/javascript,${encodeURIComponent(BREAKS_E11)}`, JAVASCRIPT];
  expect(await tried('E11', 'websocket', [process.execPath, ...broken])).toContain(
    'the client says {"sends":"subscribe after',
  );
});

it('for each rule that a case tries there is a client that breaks it', () => {
  expect(new Set([...MUTANTS.map(({ rule }) => rule), 'B1', 'E11'])).toEqual(
    new Set(cases.flatMap(({ rules }) => rules)),
  );
});
