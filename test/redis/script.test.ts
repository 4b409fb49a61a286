import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { runPipelined, script } from '../../src/redis/script.ts';
import { startRedis } from '../helpers/redis.ts';

it.each([
  ['first', false],
  // As ASKING does, while a slot moves.
  ['behind another command', true],
])(
  'a script that the server does not know yet is sent with its text, where it stands %s',
  async (_, isBehind) => {
    const redis = await startRedis();
    try {
      const text = `return '${randomUUID()}'`;
      const ways: string[] = [];
      const run = () =>
        runPipelined(script(text), (way, sent) => {
          ways.push(way);
          const pipeline = redis.admin.pipeline();
          if (isBehind) pipeline.ping();
          return pipeline[way](sent, 0).get('none');
        });
      const expected = [...(isBehind ? ['PONG'] : []), text.slice(8, -1), null];
      for (const again of [['evalsha', 'eval'], ['evalsha']]) {
        expect(await run()).toEqual(expected);
        expect(ways.splice(0)).toEqual(again);
      }
    } finally {
      await redis.stop();
    }
  },
);
