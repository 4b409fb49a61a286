import { createElement } from 'react';
import { act, create, type ReactTestRenderer } from 'react-test-renderer';
import { expect, it } from 'vitest';
import { memoryStore, type Source, type Store, typed } from '../../packages/client/src/index.ts';
import { useFeed } from '../../packages/client/src/react.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

type Event = { readonly cursor: string };
const DOCUMENT = typed<{ readonly events: Event }, { readonly after: string | null }>(
  'subscription S($after: Cursor) { events(after: $after) { cursor } }',
);
const presence = () => () => {};

interface Props {
  readonly source: Source;
  readonly store: Store<Event>;
  readonly tell: (what: string) => void;
}

function Credits({ source, store, tell }: Props) {
  useFeed(source, DOCUMENT, {
    store,
    presence,
    onErrors: ([problem]) => tell(`hears ${problem?.message}`),
    async getState(head) {
      tell(`loads up to ${head}`);
      return [];
    },
  });
  return null;
}

it('useFeed calls the functions of the last rendering, and begins no other feed for them', async () => {
  const source = createFakeSource();
  const store = memoryStore<Event>();
  await store.save(undefined, 'start');
  const told: string[] = [];
  let rendered: ReactTestRenderer | undefined;
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  for (const rendering of ['first', 'last']) {
    const tell = (what: string) => void told.push(`the ${rendering} one ${what}`);
    await act(async () => {
      const element = createElement(Credits, { source, store, tell });
      if (rendered === undefined) rendered = create(element);
      else rendered.update(element);
    });
    await until(() => source.subscriptions[0]);
  }
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
  expect(source.subscriptions).toHaveLength(1);
  const { sink } = await until(() => source.subscriptions[0]);
  sink.next({ data: { events: { cursor: 'a' } }, errors: [{ message: 'Not yours.' }] });
  sink.next({ errors: [{ message: 'Gone.', extensions: { code: 'EVENTS_GAP', oldest: 'b', head: 'c' } }] });
  (await until(() => source.calls[0])).answer({ data: { eventCursor: 'c' } });
  await until(() => told.length > 1);
  expect(told).toEqual(['the last one hears Not yours.', 'the last one loads up to c']);
  rendered?.unmount();
});
