import { Activity, type ActivityProps, createElement } from 'react';
import { act, create, type ReactTestRenderer } from 'react-test-renderer';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { memoryStore, type Source, type Store, typed } from '../../packages/client/src/index.ts';
import { useCepStatus, useFeed } from '../../packages/client/src/react.ts';
import { createFakeGateway, createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

type Event = { readonly cursor: string };
const DOCUMENT = typed<{ readonly events: Event }, { readonly after: string | null }>(
  'subscription S($after: Cursor) { events(after: $after) { cursor } }',
);

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

/** Shows or hides a screen. React ends the effects of one that it hides, and begins them again with the state that the screen had. */
async function render(mode: 'visible' | 'hidden', screen: Parameters<typeof create>[0]): Promise<void> {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  await act(async () => {
    // Its children come as an argument.
    const element = createElement(Activity, { mode } as ActivityProps, screen);
    if (rendered === undefined) rendered = create(element);
    else rendered.update(element);
  });
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
}

function Credits({ source, store }: { readonly source: Source; readonly store: Store<Event> }) {
  const { items, status } = useFeed(source, DOCUMENT, { store });
  shown.push(`${items.map(({ cursor }) => cursor).join()} ${status}`);
  return null;
}

function Receipt({ source }: { readonly source: Source }) {
  const { update, status } = useCepStatus(source, 'one');
  shown.push(`${update?.cep.status} ${status}`);
  return null;
}

it('a list that React has hidden shows its credits from when it is shown again, and what came meanwhile', async () => {
  const gateway = createFakeGateway();
  const memory = memoryStore<Event>();
  const store: Store<Event> = {
    async load() {
      // As a database takes.
      await new Promise((resolve) => setTimeout(resolve, 20));
      return memory.load();
    },
    save: (item, cursor) => memory.save(item, cursor),
  };
  const screen = createElement(Credits, { source: gateway.connect(), store });
  await render('visible', screen);
  await until(() => shown.at(-1) === ' live');
  gateway.deliver({});
  await until(() => shown.at(-1) === 'place-1 live');
  await render('hidden', screen);
  gateway.deliver({});
  shown = [];
  await render('visible', screen);
  await until(() => shown.at(-1) === 'place-2,place-1 live');
  expect(shown.filter((text) => !text.includes('place-1'))).toEqual([]);
});

it('a list that no store keeps is still there once React shows it again', async () => {
  const gateway = createFakeGateway();
  let place = '';
  const store: Store<Event> = {
    load: () => (place === '' ? undefined : { cursor: place }),
    save(_, cursor) {
      place = cursor;
    },
  };
  const screen = createElement(Credits, { source: gateway.connect(), store });
  await render('visible', screen);
  await until(() => shown.at(-1) === ' live');
  gateway.deliver({});
  await until(() => shown.at(-1) === 'place-1 live');
  await render('hidden', screen);
  gateway.deliver({});
  await render('visible', screen);
  await until(() => shown.at(-1)?.startsWith('place-2') === true && shown.at(-1)?.endsWith(' live') === true);
  expect(shown.at(-1)).toBe('place-2,place-1 live');
});

it('a list that was removed while React hid it is empty once the store has been read', async () => {
  const gateway = createFakeGateway();
  let memory = memoryStore<Event>();
  const store: Store<Event> = {
    load: () => memory.load(),
    save: (item, cursor) => memory.save(item, cursor),
  };
  const screen = createElement(Credits, { source: gateway.connect(), store });
  await render('visible', screen);
  await until(() => shown.at(-1) === ' live');
  gateway.deliver({});
  await until(() => shown.at(-1) === 'place-1 live');
  await render('hidden', screen);
  memory = memoryStore();
  await render('visible', screen);
  await until(() => shown.at(-1) === ' live');
});

it('a receipt that React has hidden shows its last state from when it is shown again', async () => {
  const source = createFakeSource();
  const screen = createElement(Receipt, { source });
  await render('visible', screen);
  const first = await until(() => source.subscriptions[0]);
  first.sink.opened();
  first.sink.next({ data: { cepStatus: { cep: { status: 'DELAYED' } } } });
  await until(() => shown.at(-1) === 'DELAYED live');
  await render('hidden', screen);
  shown = [];
  await render('visible', screen);
  const { sink } = await until(() => source.subscriptions[0]);
  expect(shown.at(-1)).toBe('DELAYED offline');
  sink.opened();
  sink.next({ data: { cepStatus: { cep: { status: 'COMPLETED' } } } });
  await until(() => shown.at(-1) === 'COMPLETED live');
  expect(shown.filter((text) => text.startsWith('undefined'))).toEqual([]);
});
