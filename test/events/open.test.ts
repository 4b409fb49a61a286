import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openEventLog } from '../../src/events/open.ts';
import { ids, moneyIn, recordingLogger } from '../helpers/events.ts';
import { PatientLog } from '../helpers/patient-log.ts';
import { startRedis } from '../helpers/redis.ts';

it.each(['node:sqlite', 'Redis'])(
  'what is opened over %s keeps as many events, and bytes, as it is told to',
  async (kind) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-open-'));
    const redis = kind === 'Redis' ? await startRedis() : undefined;
    const events = Array.from({ length: 4 }, () => moneyIn());
    for (const [client, kept, bounds] of [
      ['counted', 3, { retention: 3 }],
      ['weighed', 1, { retention: 100, retentionBytes: 1 }],
    ] as const) {
      const log = new PatientLog(
        await openEventLog({ redisUrl: redis?.url, dataDir, logger: recordingLogger(), ...bounds }),
      );
      for (const event of events) await log.append(client, event);
      expect(ids((await log.readBefore(client, null, 10)).events)).toEqual(
        events.slice(-kept).map(({ id }) => id),
      );
      await log.stop();
    }
    await redis?.stop();
    await rm(dataDir, { recursive: true });
  },
);
