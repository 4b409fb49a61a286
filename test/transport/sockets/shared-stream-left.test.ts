import { expect, it } from 'vitest';
import {
  SharedStream,
  type SharedStreamReader,
  type Subscribed,
} from '../../../src/transport/sockets/shared-stream.ts';
import { Source } from './source.ts';

const METRICS = {
  sharing: () => undefined,
  lag: () => undefined,
  delivered: () => undefined,
} as unknown as ConstructorParameters<typeof SharedStream>[1];

function open() {
  const subscribed = Promise.withResolvers<Subscribed>();
  let forgotten = 0;
  const shared = new SharedStream(
    () => subscribed.promise,
    METRICS,
    () => {
      forgotten += 1;
    },
  );
  return { shared, subscribed, forgotten: () => forgotten };
}

function reader() {
  const told: string[] = [];
  const one: SharedStreamReader = {
    deliver: () => true,
    drop: () => void told.push('drop'),
    end: () => void told.push('end'),
    sharedRests: () => void told.push('rests'),
  };
  return { one, told };
}

it('a stream that all have left while it was being opened is ended as soon as it is open', async () => {
  const { shared, subscribed, forgotten } = open();
  shared.enter();
  shared.leave();
  expect(forgotten()).toBe(1);
  const source = new Source();
  subscribed.resolve(source);
  expect(await shared.opened).toBeUndefined();
  expect(source.ended).toBe(true);
  expect(shared.caughtUpTo()).toBeUndefined();
});

it('a reader that has left is not told when the stream rests', async () => {
  const { shared, subscribed } = open();
  const [left, staying] = [reader(), reader()];
  for (const { one } of [left, staying]) {
    shared.enter();
    shared.awaitRest(one);
  }
  shared.leave(left.one);
  subscribed.resolve(new Source());
  await shared.opened;
  shared.rests();
  expect(left.told).toEqual([]);
  expect(staying.told).toContain('rests');
  shared.leave(staying.one);
});
