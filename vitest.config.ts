import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { LONG_LANE, SLOWEST } from './test/lanes.ts';

const ELSEWHERE = ['test/e2e/**', '**/node_modules/**'];

const project = (name: string, include: readonly string[], more: object = {}) => ({
  extends: true as const,
  test: { name, include: [...include], ...more },
});

/** Begins with the slowest files, and goes on in vitest's own order, which is that of their sizes in a new checkout. */
class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = ({ moduleId }: TestSpecification): boolean =>
      SLOWEST.some((file) => moduleId.endsWith(`/${file}`));
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: SlowestFirst },
    setupFiles: ['test/helpers/tell-failures.ts'],
    // How long until a test that hangs is ended. Beside busy neighbours a test takes ten times as long as alone.
    testTimeout: 300_000,
    expect: { poll: { timeout: 200_000 } },
    // Most of a test's time is waiting for a process: one more of them fits on any machine.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // Some hooks install and bundle an example, which takes minutes beside other files.
    hookTimeout: 1_800_000,
    // Node itself loads the sources, as it does in production: one copy of graphql, and no other transform.
    experimental: { viteModuleRunner: false },
    // What several files need, such as a built example, is made once for all of one run.
    env: { TEST_RUN: process.env['TEST_RUN'] ?? randomUUID() },
    // In CI each run also leaves a report to count from.
    reporters: process.env['CI'] ? ['default', 'json'] : ['default'],
    outputFile: {
      json: `test-results/${process.env['npm_lifecycle_event']?.replace(':', '-') ?? 'tests'}.json`,
    },
    // `npm run coverage`: what runs in the tests' own process. Processes that a test starts and kills leave no figures.
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts', 'packages/*/src/**/*.ts'],
      reporter: ['text-summary', 'json-summary', 'html'],
      reportsDirectory: 'test-results/coverage',
      reportOnFailure: true,
    },
    projects: [
      // `npm test`, `npm run test:long`, and both: any file by its name, and coverage.
      project('short', ['test/**/*.test.ts'], { exclude: [...ELSEWHERE, ...LONG_LANE] }),
      project('long', LONG_LANE, { exclude: ELSEWHERE }),
      project('integration', ['test/**/*.test.ts'], { exclude: ELSEWHERE }),
      project('e2e', ['test/e2e/**/*.test.ts']),
    ],
  },
});
