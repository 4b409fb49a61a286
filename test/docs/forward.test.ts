import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Kind, parse, type SelectionNode, visit } from 'graphql';
import { expect, it, onTestFinished } from 'vitest';
import { FORWARD_DOCUMENTS } from '../../src/cli/forward/forward.ts';
import { receiverAt } from '../../src/cli/forward/receivers.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import { EVENT_TYPES } from '../../src/events/log.ts';
import { startEitherHttp } from '../helpers/either-http.ts';
import { blocks, readPage } from './pages.ts';

const page = await readPage('docs/forwarding.md');

/** The fields that the command asks of each type of event; under '' those that stand in every one. */
function fieldsAsked(): Map<string, readonly string[]> {
  const namesIn = (fields: readonly SelectionNode[]): string[] =>
    fields.flatMap((one) => (one.kind === Kind.FIELD ? [one.name.value] : []));
  const asked = new Map<string, readonly string[]>();
  for (const document of FORWARD_DOCUMENTS) {
    visit(parse(document), {
      Field({ name, selectionSet: { selections } = { kind: Kind.SELECTION_SET, selections: [] } }) {
        if (name.value === 'nodes') asked.set('', namesIn(selections));
      },
      InlineFragment({ typeCondition, selectionSet }) {
        asked.set(typeCondition?.name.value ?? '', namesIn(selectionSet.selections));
      },
    });
  }
  return asked;
}

it('the credit of docs/forwarding.md has the fields that events forward posts, and the text beside it names those of the others', () => {
  const example = JSON.parse(
    blocks(page, 'json').find(({ text }) => text.includes('"MoneyInEvent"'))?.text ?? '{}',
  );
  const asked = fieldsAsked();
  expect(asked.size).toBe(EVENT_TYPES.length + 1);
  const common = asked.get('') ?? [];
  expect(Object.keys(example).toSorted()).toEqual(
    [...common, ...(asked.get('MoneyInEvent') ?? [])].toSorted(),
  );
  expect(Object.keys(example).slice(0, common.length).toSorted()).toEqual(common.toSorted());
  const [, ofCep = '', ofUpdate = ''] =
    /A CEP has (.*?) beside them, a STATUS_UPDATE (.*?)\./.exec(page) ?? [];
  const named = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  expect(named(ofCep)).toEqual(asked.get('CepEvent'));
  expect(named(ofUpdate)).toEqual(asked.get('StatusUpdateEvent'));
});

it('events forward signs the body of docs/forwarding.md as its table says', async () => {
  const [, secret = '', body = '', header = ''] =
    /^\| `(\w+)` \| `(\{.*?\})` \| `(t=\d+,v1=[0-9a-f]{64})` \|$/m.exec(page) ?? [];
  const seconds = Number(/^t=(\d+)/.exec(header)?.[1]);
  const posted: unknown[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    posted.push([request.headers['pasarela-signature'], Buffer.concat(chunks).toString()]);
    response.writeHead(204).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo; // it listens on a port
  onTestFinished(useClock({ ...clock, now: () => seconds * 1_000 }));
  const receiver = receiverAt(`http://127.0.0.1:${port}/`, secret);
  expect(await receiver.take(JSON.parse(body))).toBeUndefined();
  await receiver.close();
  expect(posted).toEqual([[header, body]]);
  expect(page).toContain(`printf %s '${seconds}.${body}' | openssl dgst -sha256 -hmac ${secret}`);
});

it('events forward posts over HTTP/1.1, as docs/forwarding.md says, also to a receiver that would rather have HTTP/2', async () => {
  expect(page).toContain('A request is HTTP/1.1');
  await using server = await startEitherHttp();
  const receiver = receiverAt(server.url, 'test');
  const event = { id: 'a', type: 'CEP', cursor: 'a', receivedAt: '2026-11-22T09:00:00.000Z' };
  expect(await receiver.take(event)).toBeUndefined();
  await receiver.close();
  expect(server.versions).toEqual(['1.1']);
});
