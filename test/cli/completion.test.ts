import { execFile } from 'node:child_process';
import { chmod, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { events, lineOf } from '../../src/cli/events.ts';
import { payments } from '../../src/cli/payments.ts';
import { pasarela } from './run.ts';

const PROGRAM = fileURLToPath(new URL('../../src/cli/pasarela.ts', import.meta.url));
const words = async (...before: string[]): Promise<string[]> =>
  (await pasarela(['completion', 'words', ...before])).stdout.trim().split('\n');

const PAYMENTS = ['status', 'stop', 'resume', 'list', 'show', 'settle', 'export', 'verify'];

describe('completion', () => {
  it('offers the commands first', async () => {
    expect(await words()).toEqual(
      expect.arrayContaining(['serve', 'doctor', 'events', 'completion', '--version']),
    );
  });

  it('offers the verbs and options of a command, and of a verb with verbs of its own', async () => {
    expect(await words('webhooks')).toEqual(expect.arrayContaining(['list', 'sync', 'remove', '--dry-run']));
    expect(await words('events')).toEqual(['tail', 'replay', 'search', 'forward', '--help']);
    expect(await words('events', 'search')).toEqual(expect.arrayContaining(['--tracking-key', '--json']));
    expect(await words('payments')).toEqual([...PAYMENTS, '--help']);
    expect(await words('payments', 'show')).toEqual(['--client', '--json', '--help']);
    expect(await words('events', 'forward')).toEqual(
      expect.arrayContaining(['status', 'retry', '--schedule']),
    );
    expect(await words('nothing')).toEqual(['']);
    expect(await words('events', 'constructor')).toContain('--help');
  });

  it.each([
    ...['tail', 'replay', 'search'].map((verb) => [verb, events] as const),
    ...PAYMENTS.map((verb) => [verb, payments] as const),
  ])('offers behind %s what is understood there', async (verb, command) => {
    const offered = command.helpOn?.[verb]?.match(/(?<![\w-])--[a-z][a-z-]*/g) ?? [];
    for (const option of new Set(offered)) {
      // None of them runs: the option lacks its value, or the environment a gateway and a record.
      const refused = await command.run([verb, option]).catch(String);
      expect(refused).toMatch(/^(UsageError|CommandError): /);
      expect(refused).not.toMatch(/Unknown option|takes no --/);
    }
  });

  it.each([
    [
      'bash',
      `source <(pasarela completion bash)
COMP_WORDS=(pasarela events se) COMP_CWORD=2
_pasarela
printf '%s\\n' "\${COMPREPLY[@]}"`,
    ],
    ['fish', "pasarela completion fish | source; complete -C 'pasarela events se'"],
    // A terminal, with a zsh that completes as somebody presses Tab; its answer is what it has made of the line.
    [
      'zsh',
      `zmodload zsh/zpty
zpty terminal zsh -f -i
zpty -w terminal 'autoload -Uz compinit; compinit -u -D; source <(pasarela completion zsh); print READ""Y'
zpty -r terminal before '*READY*'
zpty -w -n terminal $'pasarela events se\\t'
zpty -r terminal after '*pasarela events search*' && print search
zpty -d terminal`,
    ],
  ])('completes in %s', async (shell, script) => {
    const folder = await mkdtemp(join(tmpdir(), 'pasarela-completion-'));
    const command = join(folder, 'pasarela');
    await writeFile(command, `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`);
    await chmod(command, 0o755);
    const { stdout } = await promisify(execFile)(shell, ['-c', script], {
      // fish offers files, too.
      cwd: folder,
      env: { ...process.env, HOME: folder, TERM: 'dumb', PATH: `${folder}:${process.env['PATH']}` },
    });
    expect(stdout.trim()).toBe('search');
  });

  it('wants a shell that it knows', async () => {
    expect(await pasarela(['completion', 'tcsh'])).toMatchObject({ code: 2 });
  });
});

it.each([
  ['docter', 'doctor'],
  ['webhook', 'webhooks'],
  ['event', 'events'],
])('takes %s for %s', async (typed, meant) => {
  const { code, stderr } = await pasarela([typed]);
  expect(stderr).toContain(`Did you mean "${meant}"?`);
  expect(code).toBe(2);
});

it('shows one line of an event on one line of a terminal, and all of it elsewhere', () => {
  const event = {
    id: 'a4d5cf2e-6b0c-4a41-9d0b-0d6a2f7a9a11',
    type: 'MONEY_IN',
    cursor: 'x'.repeat(60),
    receivedAt: '2026-11-17T15:30:00.000Z',
    amount: { amount: '1250.00', currency: 'MXN' },
  };
  // The words at the end are id, transaction and cursor, of an event without a transaction too.
  expect(lineOf(event).split(/ +/).slice(-3)).toEqual([event.id, '-', event.cursor]);
  expect(lineOf(event, 80)).toHaveLength(80);
  expect(lineOf(event, 80)).toContain('1250.00 MXN');
});

it('colours what is read on a terminal, and nothing else', async () => {
  expect((await pasarela(['doctor'])).stdout).not.toContain('\u001b');
  // A terminal's own word for it, where a test has none.
  expect((await pasarela(['doctor'], { FORCE_COLOR: '1' })).stdout).toContain('\u001b[');
});
