import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { intentStore, type KeyValues, type Outcome, pay, typed } from '../../packages/client/src/index.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';

/** Web Locks as a browser grants them: each name to one at a time, in turn. */
function startLocks() {
  const waiting = new Map<string, Promise<unknown>>();
  const held = new Set<string>();
  return {
    request(name: string, work: () => Promise<void>): Promise<void> {
      const mine = (waiting.get(name) ?? Promise.resolve()).then(async () => {
        held.add(name);
        await work().finally(() => held.delete(name));
      });
      waiting.set(name, mine);
      return mine;
    },
    query: async () => ({ held: [...held].map((name) => ({ name })) }),
  };
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('navigator', { locks: startLocks() });
  vi.stubGlobal('document', {});
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

interface Result {
  readonly __typename: string;
}
const MUTATION = typed<
  { readonly pay: Result },
  { readonly input: { readonly idempotencyKey: string; readonly amount: string } }
>('mutation Pay($input: PayInput!) { pay(input: $input) { __typename code message } }');

/** `localStorage` as browsers share it between processes: a tab sees at once what it writes, and later what all have written, in one order. */
function startTabs(toldAfterMs: number) {
  const copies = [new Map<string, string>(), new Map<string, string>()];
  return copies.map(
    (own): KeyValues => ({
      getItem: (key) => own.get(key) ?? null,
      setItem(key, value) {
        own.set(key, value);
        setTimeout(() => {
          for (const copy of copies) copy.set(key, value);
        }, toldAfterMs);
      },
    }),
  );
}

const gateway = createFakeSource();
const press = (storage: KeyValues | undefined, amount = '1.00'): Promise<Outcome<Result>> =>
  pay(gateway, MUTATION, { amount }, { store: intentStore(storage ?? expect.unreachable(), 'payments') });
const keys = () => gateway.calls.map(({ variables }) => Object(variables['input']).idempotencyKey as string);
/** Until everybody has seen what everybody has written. */
const settle = () => vi.advanceTimersByTimeAsync(5_000);

describe.each([0, 5, 60, 900])('where a tab hears %i ms later of what another has written', (toldAfterMs) => {
  afterEach(() => {
    for (const { answer } of [...gateway.calls]) answer({ data: { pay: { __typename: 'PaySuccess' } } });
  });

  it.each([0, 1, 30, 90, 110, 190, 210, 1_000])(
    'one input that is pressed in both %i ms apart is one payment',
    async (apartMs) => {
      const tabs = startTabs(toldAfterMs);
      const outcomes = [press(tabs[0])];
      await vi.advanceTimersByTimeAsync(apartMs);
      outcomes.push(press(tabs[1]));
      await settle();
      expect(gateway.calls).toHaveLength(2);
      expect(new Set(keys()).size).toBe(1);
      for (const { answer } of [...gateway.calls]) answer({ data: { pay: { __typename: 'PaySuccess' } } });
      await settle();
      expect(await Promise.all(outcomes)).toMatchObject([{ status: 'done' }, { status: 'done' }]);
    },
  );

  it('two inputs at once are two, and both are kept', async () => {
    const tabs = startTabs(toldAfterMs);
    const outcomes = [press(tabs[0], '1.00'), press(tabs[1], '2.00')];
    await settle();
    expect(new Set(keys()).size).toBe(2);
    for (const { answer } of [...gateway.calls]) answer({ data: { pay: { __typename: 'PaySuccess' } } });
    await settle();
    await Promise.all(outcomes);
    const kept = await intentStore(tabs[0] ?? expect.unreachable(), 'payments').load();
    expect(kept.map(({ input, result }) => [input['amount'], result]).toSorted()).toEqual([
      ['1.00', { __typename: 'PaySuccess' }],
      ['2.00', { __typename: 'PaySuccess' }],
    ]);
  });
});

it('a tab whose storage was cleared goes on after ten seconds at most', async () => {
  const [tab] = startTabs(0);
  const first = press(tab);
  await settle();
  for (const { answer } of [...gateway.calls]) answer({ data: { pay: { __typename: 'PaySuccess' } } });
  await settle();
  await first;
  tab?.setItem('payments', '[]');
  const second = press(tab);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(gateway.calls).toHaveLength(1);
  for (const { answer } of [...gateway.calls]) answer({ data: { pay: { __typename: 'PaySuccess' } } });
  await settle();
  expect(await second).toMatchObject({ status: 'done' });
});

it('a tab whose storage was cleared goes on after ten seconds at most, also where the clock was put back meanwhile', async () => {
  const [tab] = startTabs(0);
  const first = press(tab);
  await vi.advanceTimersByTimeAsync(100);
  for (const { answer } of [...gateway.calls]) answer({ data: { pay: { __typename: 'PaySuccess' } } });
  await vi.advanceTimersByTimeAsync(100);
  await first;
  tab?.setItem('payments', '[]');
  vi.setSystemTime(Date.now() - 3_600_000);
  const second = press(tab);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(gateway.calls).toHaveLength(1);
  for (const { answer } of [...gateway.calls]) answer({ data: { pay: { __typename: 'PaySuccess' } } });
  await settle();
  expect(await second).toMatchObject({ status: 'done' });
});

it('a tab announces no more than what it has written last', async () => {
  const locks = startLocks();
  vi.stubGlobal('navigator', { locks });
  const [tab] = startTabs(0);
  const pressed = press(tab);
  await vi.advanceTimersByTimeAsync(100);
  for (const { answer } of [...gateway.calls]) answer({ data: { pay: { __typename: 'PaySuccess' } } });
  await vi.advanceTimersByTimeAsync(100);
  await pressed;
  expect((await locks.query()).held).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect((await locks.query()).held).toEqual([]);
});

it('a payment that is refused before it was looked at is refused, also where it was pressed twice in one tab', async () => {
  const [tab] = startTabs(5);
  const outcomes = [press(tab), press(tab)];
  await settle();
  const refusal = { errors: [{ message: 'No.', extensions: { code: 'FORBIDDEN' } }] };
  for (const { answer } of [...gateway.calls]) answer(refusal);
  await settle();
  const told = await Promise.all(outcomes);
  expect(told.map(({ status }) => status)).toContain('refused');
});

it('a page without Web Locks gets a sentence, and nothing is sent', async () => {
  // One over plain http, or in an old WebView.
  vi.stubGlobal('navigator', {});
  const [tab] = startTabs(0);
  await expect(press(tab)).rejects.toThrow('No Web Locks in this page: use https, or indexedDbIntents.');
  expect(gateway.calls).toEqual([]);
  expect(tab?.getItem('payments')).toBeNull();
});
