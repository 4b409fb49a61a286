import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  buildClientSchema,
  buildSchema as buildFrom,
  introspectionFromSchema,
  parse,
  printSchema,
  validate,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildSchema } from '../../src/schema/index.ts';
import { pasarela } from './run.ts';

let folder: string;
const write = async (name: string, text: string): Promise<string> => {
  await writeFile(join(folder, name), text);
  return join(folder, name);
};
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-schema-'));
});
afterAll(() => rm(folder, { recursive: true }));

describe('pasarela schema', () => {
  it('prints what schema.graphql holds', async () => {
    const { stdout } = await pasarela(['schema']);
    expect(stdout).toBe(await readFile(new URL('../../schema.graphql', import.meta.url), 'utf8'));
  });

  it('prints the same graph as an introspection result', async () => {
    const { stdout } = await pasarela(['schema', '--json']);
    expect(printSchema(buildClientSchema(JSON.parse(stdout)))).toBe(printSchema(buildSchema()));
  });

  it('prints the members of each interface and union', async () => {
    const { stdout } = await pasarela(['schema', '--possible-types']);
    const types = JSON.parse(stdout);
    expect(types.Event).toEqual(expect.arrayContaining(['CepEvent', 'MoneyInEvent', 'StatusUpdateEvent']));
    expect(types.InstrumentDetail).toEqual(expect.arrayContaining(['CardDetail', 'ClabeDetail']));
  });

  it('makes a manifest in which each operation stands alone under the SHA-256 of its text', async () => {
    const operations = await write(
      'operations.graphql',
      'query Accounts { client { ...Accounts } } subscription Credits { moneyIn { cursor } }',
    );
    const fragments = await write(
      'fragments.graphql',
      'fragment Accounts on Client { accounts { nodes { clabe } } }',
    );
    const { stdout, code } = await pasarela(['schema', '--persisted-documents', operations, fragments]);
    expect(code).toBe(0);
    const manifest: Record<string, string> = JSON.parse(stdout);
    const texts = Object.values(manifest);
    expect(texts).toHaveLength(2);
    for (const [hash, text] of Object.entries(manifest)) {
      expect(createHash('sha256').update(text).digest('hex')).toBe(hash);
      expect(validate(buildSchema(), parse(text))).toEqual([]);
    }
    expect(texts.find((text) => text.startsWith('query'))).toContain('fragment Accounts');
    expect(texts.find((text) => text.startsWith('subscription'))).not.toContain('fragment');
  });

  it('refuses an operation that does not fit the graph, and says where it stands', async () => {
    const file = await write('wrong.graphql', 'query Wrong {\n  client { balance }\n}');
    const { stdout, stderr, code } = await pasarela(['schema', '--persisted-documents', file]);
    expect(stderr).toContain('Cannot query field "balance"');
    expect(stderr).toContain('wrong.graphql:2:12');
    expect(stdout).toBe('');
    expect(code).toBe(1);
  });

  it('names every document that the graph breaks, in files of any form', async () => {
    const plain = await write(
      'app.graphql',
      'query Fits { client { ...Id } } query Breaks { client { ...Id wallet } }',
    );
    const shared = await write('shared.graphql', 'fragment Id on Client { id } query Fits { banks { id } }');
    const relay = await write('relay.json', JSON.stringify({ 'one-1': '{ banks { iban } }', 'two-2': '{' }));
    const apollo = await write(
      'apollo.json',
      JSON.stringify({
        format: 'apollo-persisted-query-manifest',
        version: 1,
        operations: [{ id: 'three-3', name: 'Good', type: 'query', body: 'query Good { client { id } }' }],
      }),
    );
    const broken = await pasarela(['schema', '--check', plain, shared, relay, apollo]);
    expect(broken.code).toBe(1);
    expect(broken.stdout).toContain('Breaks\n  Cannot query field "wallet" on type "Client".');
    expect(broken.stdout).toContain(`one-1 of ${relay}\n  Cannot query field "iban"`);
    expect(broken.stdout).toContain(`two-2 of ${relay}\n  Syntax Error`);
    expect(broken.stdout).toContain('3 of 6 operations fit the graph.');
    const fine = await pasarela(['schema', '--check', apollo]);
    expect([fine.code, fine.stdout]).toEqual([0, '1 of 1 operations fit the graph.\n']);
    const none = await pasarela(['schema', '--check', await write('list.json', '[]')]);
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('holds no documents')]);
  });

  it('checks an operation with the fragments of its own file, where another app has some of the same names', async () => {
    const app = (name: string, field: string) =>
      write(`${name}.graphql`, `query ${name} { client { ...F } } fragment F on Client { ${field} }`);
    const shared = await write('of-web.graphql', 'query More { client { ...F ...G } }');
    const g = await write('g.graphql', 'fragment G on Client { id }');
    const { stdout, code } = await pasarela([
      'schema',
      '--check',
      await app('web', 'id'),
      await app('phone', 'wallet'),
      g,
    ]);
    expect(stdout).toBe(
      'phone\n  Cannot query field "wallet" on type "Client".\n1 of 2 operations fit the graph.\n',
    );
    expect(code).toBe(1);
    // Which of the two it means, nobody can say.
    const unclear = await pasarela([
      'schema',
      '--check',
      join(folder, 'web.graphql'),
      await app('tablet', 'id'),
      shared,
      g,
    ]);
    expect(unclear.stdout).toBe(
      'More\n  There can be only one fragment named "F".\n2 of 3 operations fit the graph.\n',
    );
  });

  it('names what has changed since an earlier schema, and fails where that breaks documents', async () => {
    const { stdout: sdl } = await pasarela(['schema']);
    const same = await pasarela(['schema', '--check', await write('same.graphql', sdl)]);
    expect([same.code, same.stdout]).toEqual([
      0,
      expect.stringContaining('0 breaking, 0 dangerous and 0 other'),
    ]);

    const more = sdl
      .replace(/^type Bank .*\{$/m, (line) => `${line}\n  wallet: String`)
      .replace(/^enum EventType \{$/m, 'enum EventType {\n  GONE');
    const earlier = await write('earlier.graphql', more);
    const operations = await write('fits.graphql', 'query Fits { client { id } }');
    const broken = await pasarela(['schema', '--check', earlier, operations]);
    expect(broken.code).toBe(1);
    expect(broken.stdout).toContain('breaking  FIELD_REMOVED: Field Bank.wallet was removed.');
    expect(broken.stdout).toMatch(/breaking {2}VALUE_REMOVED_FROM_ENUM: .*EventType\.GONE/);
    expect(broken.stdout).toContain('1 of 1 operations fit the graph.');

    const less = buildFrom(sdl.replace(/"""[^"]*"""\n {2}STATUS_UPDATE$/m, ''));
    const answer = { data: introspectionFromSchema(less) };
    const added = await pasarela(['schema', '--check', await write('less.json', JSON.stringify(answer))]);
    expect(added.code).toBe(0);
    expect(added.stdout).toMatch(/dangerous VALUE_ADDED_TO_ENUM: .*EventType/);
    const odd = await pasarela([
      'schema',
      '--check',
      await write('odd.graphql', 'type Query { a: Missing }'),
    ]);
    expect([odd.code, odd.stderr]).toEqual([1, expect.stringContaining('holds no valid schema')]);
  });

  it('says which file cannot be read', async () => {
    const { stderr, code } = await pasarela([
      'schema',
      '--persisted-documents',
      join(folder, 'nowhere.graphql'),
    ]);
    expect(stderr).toContain('nowhere.graphql cannot be read');
    expect(code).toBe(1);
  });
});
