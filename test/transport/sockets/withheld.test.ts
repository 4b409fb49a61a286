import type { ExecutionResult } from 'graphql';
import { expect, it } from 'vitest';
import { withheld } from '../../../src/transport/sockets/withheld.ts';
import { until } from '../../helpers/until.ts';
import { Source } from './source.ts';

const REFUSED = { errors: [{ message: 'no', extensions: { code: 'UNAUTHENTICATED' } }] };

it.each([
  ['the credential holds', false, [REFUSED, { data: 'next' }]],
  ['the credential has ended', true, []],
])('where %s, a result that was refused for it is told or held back', async (_, hasEnded, told) => {
  const source = new Source();
  const got: unknown[] = [];
  let asked = 0;
  const stream = withheld(source, async () => {
    asked += 1;
    return hasEnded;
  });
  if (!('connect' in stream)) throw new Error('it is a stream');
  stream.connect({ take: (result: ExecutionResult) => void got.push(result), finish: () => undefined });
  source.pushResult(REFUSED as unknown as ExecutionResult);
  await until(() => asked === 1);
  source.pushResult({ data: 'next' } as unknown as ExecutionResult);
  // What follows on the answer has been done by then.
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(got).toEqual(told);
  stream.stop();
});
