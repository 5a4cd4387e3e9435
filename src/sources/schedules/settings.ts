import type { Config } from '../../config.ts';
import { COMMIT_LAG_MS } from '../../domain/limits.ts';
import type { ScheduleSettings } from './context.ts';
import type { Variables } from './source.ts';

/** What the configuration says of schedules. */
export function scheduleSettings(config: Config, variables: Variables): ScheduleSettings {
  return {
    variables,
    localRoots: config.schedulesLocalRoots,
    exportRoots: config.schedulesExportRoots,
    allowPrivate: config.schedulesAllowPrivate,
    authorities: null,
    limits: {
      maxUploadBytes: config.maxUploadBytes,
      maxInflatedBytes: config.maxInflatedBytes,
      minBytesPerSecond: config.minUploadRate,
      stallMs: config.uploadStallMs,
    },
    chunkBytes: config.chunkBytes,
    commitLagMs: COMMIT_LAG_MS,
    now: () => new Date(),
  };
}
