import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { printable, printableLine } from '../../src/cli/command.ts';
import { folder } from '../helpers/packages.ts';
import { demoAddresses, startProgram } from '../helpers/program.ts';
import { pasarela } from './run.ts';

const COMMANDS = [
  'serve',
  'sandbox',
  'doctor',
  'webhooks',
  'events',
  'payments',
  'reconcile',
  'schema',
  'conformance',
  'completion',
];

describe('the command line', () => {
  it('lists every command, and says what the exit codes mean', async () => {
    const { code, stdout } = await pasarela(['--help']);
    expect(code).toBe(0);
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'));
    expect(stdout).toContain('Exit codes: 0');
  });

  it('says which version it is, and of Node', async () => {
    const { code, stdout } = await pasarela(['--version']);
    const { version } = JSON.parse(await readFile(folder('package.json'), 'utf8'));
    expect(stdout).toBe(`pasarela ${version} (Node ${process.versions.node})\n`);
    expect(code).toBe(0);
  });

  it.each(COMMANDS)('explains %s with --help, and runs nothing', async (command) => {
    const { code, stdout, stderr } = await pasarela([command, '--help']);
    expect(stderr).toBe('');
    expect(stdout).toMatch(new RegExp(`^Usage: pasarela ${command}`));
    // An example, beneath the lines of usage.
    expect(stdout.slice(stdout.indexOf('\n\n'))).toMatch(/^ {2}(\S.* )?pasarela /m);
    expect(stdout).toContain('Exit codes: 0');
    expect(code).toBe(0);
  });

  it.each([
    ...['tail', 'replay', 'search', 'forward'].map((verb) => ['events', verb] as const),
    ...['status', 'stop', 'resume', 'list', 'show', 'settle', 'export', 'verify'].map(
      (verb) => ['payments', verb] as const,
    ),
  ])('explains %s %s with --help, on a page of its own', async (command, verb) => {
    const { stdout } = await pasarela([command, verb, '--help']);
    expect(stdout).toMatch(new RegExp(`^Usage: pasarela ${command} ${verb}`));
    expect(stdout.slice(stdout.indexOf('\n\n'))).toMatch(new RegExp(`pasarela ${command} ${verb}`));
    expect(stdout).toContain('Exit codes: 0');
  });

  it('shows the same behind help, and all of a command behind a verb that there is not', async () => {
    const ofVerb = await pasarela(['events', 'tail', '--help']);
    expect(await pasarela(['help', 'events', 'tail'])).toEqual(ofVerb);
    expect(await pasarela(['help', 'help'])).toEqual(await pasarela(['--help', '--version']));
    const { stdout: all } = await pasarela(['events', '--help']);
    for (const verb of ['tail', 'replay', 'search', 'forward'])
      expect(all).toMatch(new RegExp(`^ {2}${verb} +\\S`, 'm'));
    expect((await pasarela(['events', 'constructor', '--help'])).stdout).toBe(all);
  });

  it.each([
    [[], 'Usage: pasarela <command>'],
    [['frobnicate'], 'there is no command "frobnicate"'],
    [['help', 'payment'], 'there is no command "payment". Did you mean "payments"?'],
    [['constructor'], 'there is no command "constructor"'],
    [['doctor', '--loud'], "Unknown option '--loud'"],
    [['doctor', 'now'], 'takes no argument, and got "now"'],
    [['serve', '--port', '80'], "Unknown option '--port'"],
    [['payments'], 'wants status, stop, resume, list, show, settle, export or verify'],
    [['payments', 'lisst'], 'there is no "lisst". Did you mean "list"?'],
    [['events', 'tial'], 'there is no "tial". Did you mean "tail"?'],
    [['webhooks', 'snyc'], 'there is no "snyc". Did you mean "sync"?'],
    [['completion', 'bahs'], 'there is no "bahs". Did you mean "bash"?'],
    [['doctor', '--jsom'], `Unknown option '--jsom'. Did you mean "--json"?`],
    [['doctor', '--hlep'], `Unknown option '--hlep'. Did you mean "--help"?`],
    [['--verson'], 'there is no command "--verson". Did you mean "--version"?'],
    [['webhooks'], 'wants list, sync or remove'],
    [['webhooks', 'mend'], 'there is no "mend"'],
    [['webhooks', 'sync', '--types', 'CEP,MONEY_OUT'], '--types got "MONEY_OUT"'],
    [['webhooks', 'remove'], 'needs the ids'],
    [['events'], 'wants tail, replay, search or forward'],
    [['events', 'tail', '--after'], "'--after <value>' argument missing"],
    [['events', 'tail', '-j'], "Unknown option '-j'\n"],
    // The last one alone would count: no credit, and no payment that is unknown.
    [['events', 'tail', '--types', 'MONEY_IN', '--types', 'CEP'], '--types stands twice'],
    [['payments', 'list', '--state=UNKNOWN', '--state=IN_FLIGHT'], '--state stands twice'],
    [['schema', '--persisted-documents'], 'needs the names of files'],
    [['schema', '--json', '--possible-types'], 'one of its options at a time'],
  ])('ends with 2 and a reason for %j', async (args, reason) => {
    const { code, stdout, stderr } = await pasarela(args);
    expect(stderr).toContain(reason);
    expect(stderr).not.toMatch(/^ +at /m);
    expect(stdout).toBe('');
    expect(code).toBe(2);
  });

  it('ends with 1 and names every wrong variable', async () => {
    const { code, stderr } = await pasarela(['webhooks', 'list'], { PORT: 'http', AUTH_MODE: 'magic' });
    expect(stderr).toContain('PORT: got "http"');
    expect(stderr).toContain('AUTH_MODE: got "magic"');
    expect(code).toBe(1);
  });

  it('serves the gateway, as npm start does', async () => {
    await using program = startProgram('src/cli/pasarela.ts', { PORT: '0', SANDBOX_PORT: '0' }, ['serve']);
    const { gateway } = await demoAddresses(program);
    expect(await (await fetch(`${gateway}/readyz`)).json()).toMatchObject({ status: 'ready' });
    expect(await program.end('SIGTERM')).toBe(0);
  });

  it('serves the sandbox alone', async () => {
    await using program = startProgram('src/cli/pasarela.ts', { SANDBOX_PORT: '0' }, ['sandbox']);
    const [, url = ''] = await program.says(/What is there +(http:\S+)/);
    expect((await fetch(url)).status).toBe(200);
    expect(await program.end('SIGTERM')).toBe(0);
  });
});

describe('what is printed', () => {
  it('shows control characters instead of obeying them, in lines as in JSON', () => {
    const hostile = '\u001b]0;title\u0007\u001b[2J\u009b31m\u007f\r\u202eabc';
    expect(printable(hostile)).toBe('\\u001b]0;title\\u0007\\u001b[2J\\u009b31m\\u007f\\u000d\\u202eabc');
    expect(printableLine('a\nb\tc')).toBe('a\\nb\\tc');
    expect(printable('Año\n\t日本 🙂')).toBe('Año\n\t日本 🙂');
    const text = printable(JSON.stringify({ hostile }, undefined, 2));
    expect(text).not.toMatch(/[^\P{Cc}\n]/u);
    expect(JSON.parse(text)).toEqual({ hostile });
  });
});
