import { createSchema, createYoga, type Plugin } from 'graphql-yoga';
import { expect, it } from 'vitest';
import { mergeExecuteHooks } from '../../../src/graphql/plugins/merge-execute-hooks.ts';

const schema = createSchema({
  typeDefs: 'type Query { word: String }',
  resolvers: { Query: { word: () => 'w' } },
});

/** Says when each of its hooks runs, and adds its name to the word. */
function saying(name: string, said: string[], stops = false): Plugin {
  return {
    onParse() {
      said.push(`${name} parses`);
    },
    onExecute({ executeFn, setExecuteFn, setResultAndStopExecution }) {
      said.push(`${name} begins`);
      if (stops) setResultAndStopExecution({ data: { word: 'stopped' } });
      setExecuteFn(async (args) => {
        said.push(`${name} executes`);
        return executeFn(args);
      });
      return {
        onExecuteDone({ result, setResult }) {
          said.push(`${name} sees ${JSON.stringify(result)}`);
          setResult({ data: { word: name } });
        },
      };
    },
  };
}

/** What two or three plugins say, and the answer, put together by Yoga or in one. */
async function run(put: (plugins: Plugin[]) => object[], stops: boolean): Promise<unknown> {
  const said: string[] = [];
  const plugins = [saying('a', said), saying('b', said, stops), saying('c', said)];
  const yoga = createYoga({ schema, plugins: put(plugins), logging: false });
  const answer = await yoga.fetch('http://x/graphql?query={word}');
  return { said, answer: await answer.json() };
}

it.each([
  ['to the end', false],
  ['until one of them stops the execution', true],
])('runs the hooks as Yoga does, in their order, %s', async (_what, stops) => {
  const reference = await run((plugins) => plugins, stops);
  expect(await run(mergeExecuteHooks, stops)).toEqual(reference);
  expect(reference).toMatchObject({ answer: { data: { word: stops ? 'b' : 'c' } } });
});

it('refuses a hook that would have to be waited for', async () => {
  const plugin: Plugin = { onExecute: async () => undefined };
  const yoga = createYoga({ schema, plugins: mergeExecuteHooks([plugin]), logging: false });
  const answer = await (await yoga.fetch('http://x/graphql?query={word}')).json();
  expect(answer.errors).toHaveLength(1);
});
