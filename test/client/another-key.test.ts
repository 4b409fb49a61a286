import { createElement } from 'react';
import { act, create, type ReactTestRenderer } from 'react-test-renderer';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { ambient, useAmbient } from '../../packages/client/src/ambient.ts';
import { memoryStore, type Source, type Store, typed } from '../../packages/client/src/index.ts';
import { useCepStatus, useFeed } from '../../packages/client/src/react.ts';
import { createFakeGateway, createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

type Event = { readonly cursor: string };
const DOCUMENT = typed<{ readonly events: Event }, { readonly after: string | null }>(
  'subscription S($after: Cursor) { events(after: $after) { cursor } }',
);
interface Person {
  readonly name: string;
  readonly store?: Store<Event>;
  readonly enabled?: boolean;
}

let rendered: ReactTestRenderer | undefined;
/** What each rendering has shown. */
let shown: string[];
beforeEach(() => {
  shown = [];
});
afterEach(() => {
  rendered?.unmount();
  rendered = undefined;
});

async function render(element: Parameters<typeof create>[0]): Promise<void> {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  await act(async () => {
    if (rendered === undefined) rendered = create(element);
    else rendered.update(element);
  });
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
}

function Credits({ source, person }: { readonly source: Source; readonly person: Person }) {
  const { name, ...options } = person;
  const { items } = useFeed(source, DOCUMENT, options);
  shown.push(`${name} ${items.map(({ cursor }) => cursor).join()}`);
  return null;
}

function Receipt({ source, transactionId }: { readonly source: Source; readonly transactionId: string }) {
  const { update } = useCepStatus(source, transactionId);
  shown.push(`${transactionId} ${update?.cep.status}`);
  return null;
}

const of = (name: string) => shown.filter((text) => text.startsWith(name));

it.each([true, false])(
  'no rendering shows one person the credits of another, where the next one follows: %s',
  async (enabled) => {
    const gateway = createFakeGateway();
    const source = gateway.connect();
    const ana = { name: 'Ana', store: memoryStore<Event>() };
    const beto = { name: 'Beto', store: memoryStore<Event>() };
    await render(createElement(Credits, { source, person: ana }));
    gateway.deliver({});
    await until(() => shown.at(-1) === 'Ana place-1');
    await render(createElement(Credits, { source, person: { ...beto, enabled } }));
    expect(new Set(of('Beto'))).toEqual(new Set(['Beto ']));
    await render(createElement(Credits, { source, person: ana }));
    await until(() => shown.at(-1) === 'Ana place-1');
  },
);

it('no rendering of a receipt shows the state of another', async () => {
  const source = createFakeSource();
  await render(createElement(Receipt, { source, transactionId: 'one' }));
  const { sink } = await until(() => source.subscriptions[0]);
  sink.opened();
  sink.next({ data: { cepStatus: { cep: { status: 'COMPLETED' } } } });
  await until(() => shown.at(-1) === 'one COMPLETED');
  await render(createElement(Receipt, { source, transactionId: 'other' }));
  expect(new Set(of('other'))).toEqual(new Set(['other undefined']));
});

it('a receipt goes on where the person has looked at many, one after another', async () => {
  let time = Date.now();
  onTestFinished(useAmbient({ ...ambient, now: () => time }));
  const source = createFakeSource();
  for (let count = 1; count <= 30; count += 1) {
    const transactionId = `number ${count}`;
    await render(createElement(Receipt, { source, transactionId }));
    await until(() => source.subscriptions[0]?.variables['transactionId'] === transactionId);
    time += 1_000;
  }
  expect(shown.at(-1)).toBe('number 30 undefined');
});
