import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { folder as folderOf, run } from '../../helpers/packages.ts';
import { LASTS_MS, restartAll, type Step } from './step.ts';

/** Version 0.1.0, as test/scenarios/rolling-upgrade.test.ts has it. */
const EARLIER = 'test/fixtures/pasarela-0.1.0.tgz';

export const UPGRADE: Step = {
  name: 'back to 0.1.0, and upgrade',
  done: 'Both gateways are replaced by version 0.1.0, one after the other, and then by this one.',
  async run(stage) {
    const unpacked = join(stage.folder, 'earlier');
    await mkdir(unpacked);
    await run('tar', ['xzf', folderOf(EARLIER), '-C', unpacked], folderOf('.'));
    const { environment, collector } = stage;
    for (const program of [join(unpacked, 'start.js'), 'src/start.js']) {
      for (const member of stage.members) member.program = program;
      // The file of 0.1.0 was packed without the part that sends spans.
      if (program === 'src/start.js') environment['OTEL_EXPORTER_OTLP_ENDPOINT'] = collector.url;
      else delete environment['OTEL_EXPORTER_OTLP_ENDPOINT'];
      await restartAll(stage);
      await pause(LASTS_MS);
    }
  },
};
