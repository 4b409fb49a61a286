import { isInterfaceType, isObjectType } from 'graphql';
import { expect, it } from 'vitest';
import { buildSchema } from '../../src/schema/index.ts';
import { readPage } from './pages.ts';

/** Types with an id of their own that `node` does not find. */
const KEPT_BESIDE = ['Credential', 'CredentialToken'];

it('the page has Relay keep by its id what has one for itself, and nothing that has the id of another', async () => {
  const [, code = ''] = /^const getDataID = (.*);$/m.exec(await readPage('docs/clients/relay.md')) ?? [];
  const getDataID: (value: object, type: string) => unknown = new Function(`return ${code}`)();
  const schema = buildSchema();
  const types = Object.values(schema.getTypeMap())
    .filter(isObjectType)
    .filter((type) => Object.hasOwn(type.getFields(), 'id'));
  const byId = types
    .map(({ name }) => name)
    .filter((name) => getDataID({ id: 'id', cursor: 'cursor' }, name) === 'id');
  const node = schema.getType('Node');
  const nodes = isInterfaceType(node) ? schema.getPossibleTypes(node).map(({ name }) => name) : [];
  expect(byId.toSorted()).toEqual([...nodes, ...KEPT_BESIDE].toSorted());
});
