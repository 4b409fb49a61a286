import { gatewayProgram, temporaryFolder } from '../lib/contenders.ts';
import { startServer } from '../lib/process.ts';
import { number, type Section } from '../lib/section.ts';
import { startStub } from '../lib/stub.ts';

/** Documents of each kind; the unit of CPU times is a tick, so that one alone could not be measured. */
const DOCUMENTS = 200;
const SIZE = 20_000;
/** What one refusal may cost, in milliseconds of CPU. */
const LIMIT_MS = 50;

const HOSTILE: readonly (readonly [what: string, document: string])[] = [
  ['20,000 aliases', `{ ${Array.from({ length: SIZE }, (_, index) => `a${index}: __typename`).join(' ')} }`],
  ['20,000 directives', `{ __typename ${'@skip(if: false) '.repeat(SIZE)} }`],
];

/** What it costs to refuse a document that is made to cost. */
export async function w7(): Promise<Section> {
  await using stub = await startStub();
  await using folder = await temporaryFolder();
  await using gateway = await startServer(gatewayProgram({ upstreamUrl: stub.url, dataDir: folder.path }));
  const costs: [what: string, milliseconds: number][] = [];
  for (const [what, document] of HOSTILE) {
    const before = gateway.cpuMs();
    for (let sent = 0; sent < DOCUMENTS; sent += 1) await refused(gateway.url, document);
    costs.push([what, (gateway.cpuMs() - before) / DOCUMENTS]);
  }
  return {
    title: 'W7, hostile documents',
    method: `Documents of 20,000 aliases and of 20,000 directives, ${DOCUMENTS} of each, one after another; each is refused.`,
    columns: ['document', 'CPU ms / refusal'],
    rows: costs.map(([what, milliseconds]) => [what, number(milliseconds)]),
    goals: costs.map(([what, milliseconds]) => ({
      work: 'W7',
      what: `to refuse ${what}`,
      limit: LIMIT_MS,
      reached: milliseconds,
      unit: ' ms',
    })),
  };
}

async function refused(url: string, query: string): Promise<void> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const text = await response.text();
  if (!text.includes('TOO_COMPLEX'))
    throw new Error(`The gateway did not refuse: ${response.status} ${text}`);
}
