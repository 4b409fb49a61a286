import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readCases, TRANSPORTS } from '../../conformance/case.ts';
import { play } from '../../conformance/play.ts';
import { readPage } from '../docs/pages.ts';
import { folder } from '../helpers/packages.ts';

const PYTHON = folder('conformance/clients/python.py');
const CLIENTS = [
  {
    name: '@pasarela/client',
    command: [process.execPath, folder('conformance/clients/javascript.ts')],
    transports: TRANSPORTS,
  },
  { name: 'the client in Python', command: ['python3', PYTHON], transports: ['sse'] },
] as const;
/** Longer than the suite waits for a client. */
const LONG = { timeout: 120_000 };

const cases = await readCases();

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

/** What breaks a rule in the client in Python, in which case that shows, and as what. */
const MUTANTS = [
  {
    rule: 'R1',
    from: '{"after": cursor}',
    to: '{"after": command.get("saved")}',
    found: 'the client sends subscribe after "start"',
  },
  { rule: 'R5', from: 'say(gap=code)', to: 'pass', found: 'the client says {"event":"b"}' },
  { rule: 'B5', from: 'cursor = block["id"]', to: 'pass', found: 'the client sends subscribe after "b"' },
  { rule: 'T3', from: 'tokens.pop(0)', to: 'pass', found: 'the client shows the token first' },
  {
    rule: 'P3',
    from: '"idempotencyKey": key',
    to: '"idempotencyKey": str(uuid.uuid4())',
    found: 'the client repeats with another key',
  },
  {
    rule: 'P7',
    from: 'say(unknown=True) if unclear else say(refused=code)',
    to: 'say(refused=code)',
    found: 'the client says {"refused":"FORBIDDEN"}',
  },
];

it.concurrent.for(MUTANTS)(
  'a client that breaks $rule is found out',
  LONG,
  async (mutant, { expect: be }) => {
    const { rule, from, to, found } = mutant;
    const text = await readFile(PYTHON, 'utf8');
    be(text.split(from)).toHaveLength(2);
    const work = await mkdtemp(join(tmpdir(), 'pasarela-conformance-'));
    try {
      const program = join(work, 'client.py');
      await writeFile(program, text.replace(from, to));
      const told = [];
      for (const one of cases.filter(
        ({ rules, transports }) => rules.includes(rule) && transports.includes('sse'),
      ))
        told.push(await play(one, 'sse', ['python3', program]));
      be(told.join('\n')).toContain(found);
    } finally {
      await rm(work, { recursive: true });
    }
  },
);
