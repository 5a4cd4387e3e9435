import type { Logger } from 'pino';
import type { WorkerSchedules } from '../../../jobs/worker.ts';
import type { Config } from '../../config.ts';
import { openSchedulesFile } from '../../schedules/schedules-file.ts';
import { scheduleSettings } from '../../schedules/settings.ts';
import type { Environment } from '../environment.ts';

/** What SCHEDULES_FILE asks of a worker; null: nothing. @throws ConfigError */
export async function openWorkerSchedules(
  config: Config,
  environment: Environment,
  log: Logger,
): Promise<WorkerSchedules | null> {
  if (config.schedulesFile === null) return null;
  const file = await openSchedulesFile(config.schedulesFile, log);
  return { file, settings: scheduleSettings(config, environment) };
}
