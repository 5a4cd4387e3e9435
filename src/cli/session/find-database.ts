import { join } from 'node:path';
import type { Config } from '../../config.ts';
import { findRunningPostgres } from '../../postgres/embedded/find-running.ts';
import { CommandFailed } from '../exit-codes.ts';
import { requireData } from './provide-for-command.ts';

/** The URL of the database, if it runs: a look is no reason to start one. @throws CommandFailed */
export async function findDatabase(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<string> {
  await requireData(config);
  const { databaseUrl, dataDir } = config;
  const url = databaseUrl ?? (await findRunningPostgres(join(dataDir, 'postgres')));
  if (url !== undefined) return url;
  throw new CommandFailed(`Nothing runs on ${dataDir}. Run \`sluice start\` there, or set DATABASE_URL.`);
}
