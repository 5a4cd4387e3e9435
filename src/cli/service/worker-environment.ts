import type { Config } from '../../config.ts';
import { type Environment, overrideEnvironment } from '../environment.ts';

/** What a worker process of ours is to see: our own configuration, on the database that was provided. */
export function workerEnvironment(
  environment: Environment,
  config: Config,
  databaseUrl: string,
): Environment {
  return overrideEnvironment(environment, {
    DATABASE_URL: databaseUrl,
    // Absolute now, whatever folder the worker starts in.
    DATA_DIR: config.dataDir,
    STORAGE_URL: config.storage.kind === 's3' ? config.storage.url : config.storage.directory,
    INBOX_DIR: config.inboxDir ?? '',
    SCHEDULES_FILE: config.schedulesFile ?? '',
  });
}
