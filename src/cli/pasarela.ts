#!/usr/bin/env node
import { readFile } from 'node:fs/promises';
import { ConfigError } from '../app/config.ts';
import { requireNode } from '../common/node-version.js';
import {
  type Command,
  CommandError,
  EXIT,
  endWithReader,
  helpBehind,
  remark,
  UsageError,
} from './command.ts';
import { completion } from './completion.ts';
import { suggestion } from './suggestion.ts';

/** Each subcommand is loaded when it is used, because `--help` should not wait for a GraphQL schema. */
const COMMANDS: Readonly<Record<string, { summary: string; load(): Promise<Command> }>> = {
  serve: {
    summary: 'the gateway (what npm start runs)',
    load: async () => (await import('./serve.ts')).serve,
  },
  sandbox: {
    summary: 'the REST service in a box, alone',
    load: async () => (await import('./serve.ts')).sandbox,
  },
  doctor: {
    summary: 'looks at configuration, upstream, token, Redis, webhooks and clock, and names cures',
    load: async () => (await import('./doctor.ts')).doctor,
  },
  webhooks: {
    summary: 'list, sync or remove what is registered at the provider',
    load: async () => (await import('./webhooks.ts')).webhooks,
  },
  events: {
    summary: 'tail, replay, search or forward the events of a running gateway',
    load: async () => (await import('./events.ts')).events,
  },
  payments: {
    summary: 'list, show and settle payments, stop and resume them, export and verify their journal',
    load: async () => (await import('./payments.ts')).payments,
  },
  reconcile: {
    summary: 'compare balances with the credits and payments that the gateway knows',
    load: async () => (await import('./reconcile.ts')).reconcile,
  },
  schema: {
    summary: 'the graph as SDL, possible types, or a manifest of persisted documents',
    load: async () => (await import('./schema.ts')).schema,
  },
  conformance: {
    summary: 'hold a running gateway to the rules of PROTOCOL.md',
    load: async () => (await import('./conformance/command.ts')).conformance,
  },
  completion: {
    summary: 'a script that completes commands and options in bash, zsh or fish',
    load: async () => completion({ names: Object.keys(COMMANDS), load: (name) => loaded(name) }),
  },
};

async function loaded(name: string): Promise<Command> {
  const entry = COMMANDS[name];
  if (entry === undefined) throw new UsageError(`there is no command "${name}"`);
  return entry.load();
}

requireNode('npx pasarela');

const HELP = `Usage: pasarela <command> [options]
       pasarela --version

${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(11)} ${summary}`)
  .join('\n')}

pasarela <command> --help says more, and so does pasarela events <verb> --help or payments <verb> --help. Every command reads the
variables of docs/configuration.md; secrets come from there alone, never from the command line, and none is printed.

Exit codes: 0 done; 1 something is wrong, and the message says what; 2 the command line is not understood.`;

const isHelp = (word: string | undefined): boolean => word === '--help' || word === '-h' || word === 'help';

async function readVersion(): Promise<string> {
  const text = await readFile(new URL('../../package.json', import.meta.url), 'utf8');
  const { version }: { version?: unknown } = JSON.parse(text);
  return String(version);
}

async function main(args: readonly string[]): Promise<number | undefined> {
  const [name, ...rest] = args;
  if (isHelp(name)) {
    const [topic = '-'] = rest;
    if (!topic.startsWith('-') && !isHelp(topic)) return main([...rest, '--help']);
    process.stdout.write(`${HELP}\n`);
    return EXIT.done;
  }
  if (name === '--version' || name === '-v') {
    process.stdout.write(`pasarela ${await readVersion()} (Node ${process.versions.node})\n`);
    return EXIT.done;
  }
  const entry = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry === undefined) {
    remark(
      name === undefined
        ? HELP
        : `pasarela: there is no command "${name}".${suggestion(name, [...Object.keys(COMMANDS), '--help', '--version'])}\n\n${HELP}`,
    );
    return EXIT.usage;
  }
  const command = await entry.load();
  if (rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(`${helpBehind(command, rest[0])}\n`);
    return EXIT.done;
  }
  try {
    return await command.run(rest);
  } catch (error) {
    if (error instanceof UsageError) {
      remark(`pasarela ${name}: ${error.message}\nTry: pasarela ${name} --help`);
      return EXIT.usage;
    }
    if (error instanceof CommandError || error instanceof ConfigError) {
      remark(error.message);
      return EXIT.wrong;
    }
    throw error;
  }
}

// A reader that stops early, such as `head`, is no failure.
endWithReader();
// A remark that cannot be written is dropped: it must not cut off what the command does.
process.stderr.on('error', () => undefined);

const code = await main(process.argv.slice(2));
if (code !== undefined) process.exitCode = code;
