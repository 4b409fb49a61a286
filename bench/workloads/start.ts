import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { gatewayProgram, temporaryFolder } from '../lib/contenders.ts';
import { freePort } from '../lib/port.ts';
import { cpuMsOf, endWithThisProcess, rssBytesOf, type ServerProgram } from '../lib/process.ts';
import { number, type Section, spread, times } from '../lib/section.ts';
import { percentile, spreadOf } from '../lib/stats.ts';
import { startStub } from '../lib/stub.ts';

const RUNS = 10;
const TIMEOUT_MS = 10_000;
const MEBIBYTE = 1_048_576;
const SOURCES = ['src/start.js'];
/** What the image and the package run; `bench/install.ts` builds it. */
const BUILT = ['dist/lib/pasarela.js', 'serve'];

interface Start {
  readonly ms: number;
  readonly cpuMs: number;
  readonly rssBytes: number;
}

export async function w6(): Promise<Section> {
  await using stub = await startStub();
  await using folder = await temporaryFolder();
  const port = await freePort();
  const env = { PORT: String(port) };
  const upstream = gatewayProgram({ upstreamUrl: stub.url, dataDir: folder.path, env });
  const sandbox: ServerProgram = { ...upstream, env: { ...env, SANDBOX_PORT: String(await freePort()) } };
  const run = (program: ServerProgram, args: readonly string[]) => ({
    once: () => untilReady({ ...program, args }, port),
    starts: [] as Start[],
  });
  const alone = { once: nodeAlone, starts: [] as Start[] };
  const runs = {
    'node alone': alone,
    'the sources in front of an upstream': run(upstream, SOURCES),
    '`dist` in front of an upstream': run(upstream, BUILT),
    'the sources with the embedded sandbox, as `npm start`': run(sandbox, SOURCES),
    '`dist` with the embedded sandbox, as `npx pasarela serve`': run(sandbox, BUILT),
  };
  // The first start of each fills the caches of the disk and of Node.
  for (const { once } of Object.values(runs)) await once();
  for (let round = 0; round < RUNS; round += 1)
    for (const { once, starts } of Object.values(runs)) starts.push(await once());
  const figure = (starts: readonly Start[], of: keyof Start) => spreadOf(starts.map((start) => start[of]));
  const built = runs['`dist` with the embedded sandbox, as `npx pasarela serve`'].starts;
  const sources = runs['the sources with the embedded sandbox, as `npm start`'].starts;
  const ratios = built.map(({ cpuMs }, round) => cpuMs / (sources[round]?.cpuMs ?? Number.NaN));
  return {
    title: 'W6, start to ready',
    method: `From the start of the process until \`/readyz\` answers 200; CPU time of all threads and resident memory then; ${RUNS} starts each, interleaved.`,
    columns: ['', 'ms', 'CPU ms', 'MB'],
    rows: Object.entries(runs).map(([what, { starts }]) => [
      what,
      spread(figure(starts, 'ms')),
      spread(figure(starts, 'cpuMs')),
      number(figure(starts, 'rssBytes').median / MEBIBYTE),
    ]),
    goals: [
      ...Object.entries(runs)
        .slice(1)
        .map(([what, { starts }]) => ({
          work: 'W6',
          what: `start to ready, ${what}`,
          limit: 400,
          reached: figure(starts, 'ms').median,
          unit: ' ms',
        })),
      {
        work: 'W6',
        what: `CPU to ready of \`dist\` with the sandbox, × the sources (${times(Math.min(...ratios))} to ${times(Math.max(...ratios))})`,
        limit: 0.4,
        reached: percentile(ratios, 0.5),
        unit: '×',
      },
      {
        work: 'W6',
        what: 'memory of `dist` with the sandbox, once ready',
        limit: 110,
        reached: figure(built, 'rssBytes').median / MEBIBYTE,
        unit: ' MB',
      },
    ],
  };
}

async function untilReady(program: ServerProgram, port: number): Promise<Start> {
  const start = performance.now();
  const child = spawn(process.execPath, program.args, {
    stdio: 'ignore',
    cwd: program.cwd,
    env: { ...program.env },
  });
  endWithThisProcess(child);
  const ended = once(child, 'exit');
  try {
    while (!(await isReady(port))) {
      if (performance.now() - start > TIMEOUT_MS) throw new Error('The gateway was not ready in time.');
      await pause(2);
    }
    const ms = performance.now() - start;
    return { ms, cpuMs: cpuMsOf(Number(child.pid)), rssBytes: rssBytesOf(Number(child.pid)) };
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

const isReady = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ status }) => status === 200,
    () => false,
  );

/** The price of Node itself, which tells its own figures as it ends. */
async function nodeAlone(): Promise<Start> {
  const start = performance.now();
  const tell =
    'const { user, system } = process.cpuUsage(); process.stdout.write(JSON.stringify({ cpuMs: (user + system) / 1000, rssBytes: process.memoryUsage.rss() }))';
  const child = spawn(process.execPath, ['-e', tell], { stdio: ['ignore', 'pipe', 'ignore'], env: {} });
  let told = '';
  child.stdout.on('data', (chunk: Buffer) => {
    told += chunk.toString();
  });
  await once(child, 'close');
  return { ms: performance.now() - start, ...JSON.parse(told) };
}
