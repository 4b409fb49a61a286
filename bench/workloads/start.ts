import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { gatewayProgram, temporaryFolder } from '../lib/contenders.ts';
import { freePort } from '../lib/port.ts';
import { endWithThisProcess, type ServerProgram } from '../lib/process.ts';
import { type Section, spread } from '../lib/section.ts';
import { type Spread, spreadOf } from '../lib/stats.ts';
import { startStub } from '../lib/stub.ts';

const RUNS = 10;
const TIMEOUT_MS = 10_000;

export async function w6(): Promise<Section> {
  await using stub = await startStub();
  await using folder = await temporaryFolder();
  const port = await freePort();
  const env = { PORT: String(port) };
  const upstream = gatewayProgram({ upstreamUrl: stub.url, dataDir: folder.path, env });
  const sandbox: ServerProgram = { ...upstream, env: { ...env, SANDBOX_PORT: String(await freePort()) } };
  const runs: readonly (readonly [what: string, run: () => Promise<number>, samples: number[]])[] = [
    ['node alone', () => nodeAlone(), []],
    ['in front of an upstream', () => untilReady(upstream, port), []],
    ['with the embedded sandbox, as `npm start`', () => untilReady(sandbox, port), []],
  ];
  // The first start of each fills the caches of the disk and of Node.
  for (const [, run] of runs) await run();
  for (let round = 0; round < RUNS; round += 1) {
    for (const [, run, samples] of runs) samples.push(await run());
  }
  const results = runs.map(([what, , samples]): [string, Spread] => [what, spreadOf(samples)]);
  return {
    title: 'W6, start to ready',
    method: `From the start of the process until \`/readyz\` answers 200; ${RUNS} starts each, interleaved.`,
    columns: ['', 'ms'],
    rows: results.map(([what, result]) => [what, spread(result)]),
    goals: results.slice(1).map(([what, { median }]) => ({
      work: 'W6',
      what: `start to ready, ${what}`,
      limit: 400,
      reached: median,
      unit: ' ms',
    })),
  };
}

async function untilReady(program: ServerProgram, port: number): Promise<number> {
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
    return performance.now() - start;
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

async function nodeAlone(): Promise<number> {
  const start = performance.now();
  const child = spawn(process.execPath, ['-e', '0'], { stdio: 'ignore', env: {} });
  await once(child, 'exit');
  return performance.now() - start;
}
