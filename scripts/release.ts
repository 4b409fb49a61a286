// What a release does without the public network. The workflow `release.yml` and `test/packages/release.test.ts` run it.
//
//   node scripts/release.ts notes v0.2.0     the section of the changelog, once everything bears that version
//   node scripts/release.ts pack folder      the packages as npm will publish them
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import { packIn, packPackage } from './packing.ts';

const read = (file: string): string => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');

/** Everything that bears the version. */
function versions(): Readonly<Record<string, string | undefined>> {
  const chart = parse(read('charts/pasarela/Chart.yaml'));
  return {
    'package.json': JSON.parse(read('package.json')).version,
    'packages/client/package.json': JSON.parse(read('packages/client/package.json')).version,
    'packages/sandbox/package.json': JSON.parse(read('packages/sandbox/package.json')).version,
    'charts/pasarela/Chart.yaml, version': chart.version,
    'charts/pasarela/Chart.yaml, appVersion': chart.appVersion,
    ...Object.fromEntries(['doctor', 'forward', 'pasarela'].map(imageOf)),
  };
}

/** The version of the image that a manifest runs, beneath the name of the place. */
function imageOf(manifest: string): readonly [string, string | undefined] {
  const file = `deploy/kubernetes/${manifest}.yaml`;
  return [`${file}, image`, /^ *image: \S+:(\S+)$/m.exec(read(file))?.[1]];
}

/** @throws Error where the tag is a pre-release, something bears another version than it, or the changelog has no section for it. */
function notes(tag: string): string {
  const version = tag.replace(/^v/, '');
  // npm would refuse it once the image and the chart are out.
  if (version.includes('-'))
    throw new Error(`${tag}: npm publishes a pre-release under a --tag alone, and release.yml names none.`);
  const others = Object.entries(versions()).filter(([, borne]) => borne !== version);
  if (others.length > 0)
    throw new Error(`${tag}: ${others.map(([file, borne]) => `${file} says ${borne}`).join('; ')}.`);
  const lines = read('CHANGELOG.md').split('\n');
  const start = lines.findIndex((line) => line.startsWith(`## [${version}]`));
  if (start < 0) throw new Error(`${tag}: CHANGELOG.md has no section [${version}].`);
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith('## ['));
  return lines
    .slice(start + 1, length < 0 ? undefined : start + 1 + length)
    .join('\n')
    .trim();
}

/** @returns the paths of what was packed, the gateway's first. */
async function pack(folder: string): Promise<readonly string[]> {
  const destination = resolve(folder);
  mkdirSync(destination, { recursive: true });
  const built = join(destination, 'gateway');
  execFileSync(process.execPath, ['scripts/build.ts', built], { stdio: ['ignore', 'ignore', 'inherit'] });
  return [
    await packIn(built, destination),
    await packPackage('client', destination),
    await packPackage('sandbox', destination),
  ];
}

const [command, argument] = process.argv.slice(2);
if (command === 'notes' && argument !== undefined) console.log(notes(argument));
else if (command === 'pack' && argument !== undefined) console.log((await pack(argument)).join('\n'));
else throw new Error('Say notes and a tag, or pack and a folder.');
