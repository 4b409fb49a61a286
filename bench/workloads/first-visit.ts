import { spawn } from 'node:child_process';
import { startBrowser } from '../../test/helpers/browser.ts';
import { gatewayProgram } from '../lib/contenders.ts';
import { freePort } from '../lib/port.ts';
import { endWithThisProcess } from '../lib/process.ts';
import { number, type Section, spread } from '../lib/section.ts';
import { spreadOf } from '../lib/stats.ts';
import { until } from '../lib/until.ts';

const VISITS = 7;
const TIMEOUT_MS = 10_000;
const MIB = 1024 * 1024;

/** What one visit took. */
interface Visit {
  /** Until the first line of the editor stands, in milliseconds. */
  readonly editorMs: number;
  /** As sent, compressed. */
  readonly bytes: number;
}

/** Opens the page in a browser that has never seen it. */
async function visit(address: string): Promise<Visit> {
  const browser = await startBrowser();
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    // A first page of the browser's own: what a browser does once is not the page's doing.
    await page.goto('about:blank');
    const session = await context.newCDPSession(page);
    await session.send('Network.enable');
    let bytes = 0;
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    const start = performance.now();
    await page.goto(address, { waitUntil: 'commit' });
    await page.locator('.wb-operation .view-line').first().waitFor();
    const editorMs = performance.now() - start;
    await page.waitForLoadState('networkidle');
    return { editorMs, bytes };
  } finally {
    await browser.close();
  }
}

const answers = (address: string): Promise<boolean> =>
  fetch(address, { headers: { accept: 'text/html' } }).then(
    ({ ok }) => ok,
    () => false,
  );

export async function w17(): Promise<Section> {
  const program = gatewayProgram({ upstreamUrl: '', dataDir: '' });
  const port = await freePort();
  const gateway = spawn(process.execPath, program.args, {
    stdio: 'ignore',
    env: { PORT: String(port), SANDBOX_PORT: String(await freePort()) },
    ...(program.cwd === undefined ? {} : { cwd: program.cwd }),
  });
  endWithThisProcess(gateway);
  const address = `http://127.0.0.1:${port}/graphql`;
  await until(() => answers(address), TIMEOUT_MS);
  // The gateway reads its files once.
  await visit(address);
  const visits: Visit[] = [];
  for (let count = 0; count < VISITS; count += 1) visits.push(await visit(address));
  gateway.kill('SIGTERM');
  const editor = spreadOf(visits.map(({ editorMs }) => editorMs));
  const size = spreadOf(visits.map(({ bytes }) => bytes / MIB));
  return {
    title: 'W17, the first visit to the page',
    method: `The workbench at \`/graphql\` of \`npm start\`, in a Chromium that has just been started and has nothing in its cache; ${VISITS} visits after one. The browser, the gateway and the sandbox share the machine.`,
    columns: ['until the editor, ms', 'over the wire, MiB'],
    rows: [[spread(editor), number(size.median)]],
    goals: [
      { work: 'W17', what: 'until the editor', limit: 1_500, reached: editor.median, unit: ' ms' },
      { work: 'W17', what: 'over the wire', limit: 3, reached: size.median, unit: ' MiB' },
    ],
  };
}
