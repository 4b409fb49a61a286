import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endWithThisProcess, freePort } from '../helpers/redis.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

interface Stage {
  readonly name: string;
  readonly base: string;
  readonly root: string;
  workdir: string;
  readonly environment: Record<string, string>;
  user: string;
  readonly last: Map<string, string>;
}

/** The instructions of the Dockerfile, continued lines joined and comments left out. */
const instructions = (text: string): readonly (readonly [name: string, rest: string])[] =>
  text
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => [line.split(' ')[0] ?? '', line.slice(line.indexOf(' ') + 1).trim()]);

/** The paths that `.dockerignore` lets into the build: it leaves out everything but what it names. */
async function context(): Promise<readonly string[]> {
  const [first, ...rest] = (await readFile(join(ROOT, '.dockerignore'), 'utf8')).trim().split('\n');
  expect(first).toBe('*');
  return rest.map((line) => line.replace(/^!/, ''));
}

/**
 * Carries out the Dockerfile by hand: each stage in an empty folder, which stands for the root of its image. What only an
 * engine can do (the base image, users, volumes) is left to other tests.
 */
async function build(folder: string): Promise<Stage> {
  const included = await context();
  const stages: Stage[] = [];
  for (const [name, rest] of instructions(await readFile(join(ROOT, 'Dockerfile'), 'utf8'))) {
    const stage = stages.at(-1);
    if (name === 'FROM') {
      const [, base = '', alias = String(stages.length)] = /^(\S+)(?: AS (\S+))?$/.exec(rest) ?? [];
      const root = join(folder, alias);
      await mkdir(root, { recursive: true });
      stages.push({ name: alias, base, root, workdir: '/', environment: {}, user: 'root', last: new Map() });
      continue;
    }
    if (stage === undefined) throw new Error('a Dockerfile begins with FROM');
    const inside = (path: string) =>
      path.startsWith('/') ? join(stage.root, path) : join(stage.root, stage.workdir, path);
    if (name === 'WORKDIR') {
      stage.workdir = rest;
      await mkdir(inside('.'), { recursive: true });
    } else if (name === 'ENV') {
      for (const [, key = '', value = ''] of rest.matchAll(/(\w+)=(\S+)/g)) stage.environment[key] = value;
    } else if (name === 'USER') {
      stage.user = rest;
    } else if (name === 'COPY') {
      const [, from, paths = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(rest) ?? [];
      const sources = paths.split(' ');
      const target = sources.pop() ?? '';
      const other = stages.find((candidate) => candidate.name === from);
      for (const source of sources) {
        if (from === undefined) expect(included).toContain(source);
        const origin = other === undefined ? join(ROOT, source) : join(other.root, source);
        await cp(origin, target.endsWith('/') ? join(inside(target), source) : inside(target), {
          recursive: true,
        });
      }
    } else if (name === 'RUN') {
      const home = (text: string) => text.replaceAll('/home/node', join(stage.root, 'home/node'));
      const command = home(rest);
      const environment = Object.entries(stage.environment).map(([key, value]) => [key, home(value)]);
      const env = {
        ...process.env,
        // vitest sets it where it collects coverage.
        NODE_DISABLE_COMPILE_CACHE: undefined,
        // What the checkout has installed need not be fetched again.
        npm_config_prefer_offline: 'true',
        ...Object.fromEntries(environment),
      };
      await run('sh', ['-c', command], { cwd: inside('.'), env });
    } else {
      stage.last.set(name, rest);
    }
  }
  const image = stages.at(-1);
  if (image === undefined) throw new Error('a Dockerfile has a stage');
  return image;
}

let folder: string;
let image: Stage;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-image-'));
  image = await build(folder);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const words = (instruction: string): readonly string[] => JSON.parse(image.last.get(instruction) ?? '[]');

describe('the image, made by hand', () => {
  it('stands on the Node that the project is developed with', async () => {
    const { devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    expect(image.base).toBe(`node:${devDependencies.node}-alpine`);
  });

  it('holds what runs, and nothing of development', async () => {
    const app = join(image.root, image.workdir);
    expect((await readdir(app)).sort()).toEqual([
      'LICENSE',
      'README.md',
      'THIRD-PARTY-LICENSES.txt',
      'docs',
      'lib',
      'package.json',
      'workbench',
    ]);
    const { stdout } = await run('du', ['-sm', app]);
    expect(Number(stdout.split('\t')[0])).toBeLessThan(20);
  });

  it('does not run as root, and says so by a number, as Kubernetes wants it', () => {
    expect(image.user).toBe('1000:1000');
  });

  it('serves the graph, is found healthy, drains at its stop signal, and doctors itself', async () => {
    const port = String(await freePort());
    const { PATH = '' } = process.env;
    const compiled = join(image.root, image.environment['NODE_COMPILE_CACHE'] ?? '');
    const environment = {
      PATH,
      ...image.environment,
      PORT: port,
      HOST: '127.0.0.1',
      SANDBOX_PORT: '0',
      DATA_DIR: join(image.root, image.environment['DATA_DIR'] ?? ''),
      NODE_COMPILE_CACHE: compiled,
    };
    const before = await readdir(compiled, { recursive: true });
    const options = { cwd: join(image.root, image.workdir), env: environment };
    const [, ...entry] = words('ENTRYPOINT');
    const gateway = spawn(process.execPath, [...entry, ...words('CMD')], options);
    endWithThisProcess(gateway);
    const gone = once(gateway, 'exit');
    let written = '';
    gateway.stdout.on('data', (chunk: Buffer) => {
      written += chunk.toString();
    });
    const started = new Promise<void>((resolve) => {
      gateway.stdout.on('data', () => {
        if (written.includes('Ctrl-C ends it')) resolve();
      });
    });
    await Promise.race([started, gone]);
    expect(written).toContain('Pasarela is ready');

    const [, check = '[]'] = /CMD (\[.*\])$/.exec(image.last.get('HEALTHCHECK') ?? '') ?? [];
    const [, ...probe]: readonly string[] = JSON.parse(check);
    await run(process.execPath, probe, options);
    const { stdout } = await run(process.execPath, [...entry, 'doctor'], options);
    expect(stdout).toContain('and is ready');
    expect(stdout).toContain('0 failures, 0 warnings.');

    gateway.kill(image.last.get('STOPSIGNAL') as NodeJS.Signals);
    expect(await gone).toEqual([0, null]);
    // Nearly all of what a start loads had been compiled with the image.
    expect(before.length).toBeGreaterThan(60);
    const added = (await readdir(compiled, { recursive: true })).length - before.length;
    expect(added / before.length).toBeLessThan(0.05);
    await expect(run(process.execPath, probe, options)).rejects.toThrow();
  });
});
