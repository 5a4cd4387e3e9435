import type { Config } from '../../config.ts';
import { findDatabaseUrl } from '../../postgres/provide.ts';
import { CommandFailed } from '../exit-codes.ts';
import { requireData } from './provide-for-command.ts';

/** The URL of the database, if it runs: a look is no reason to start one. @throws CommandFailed */
export async function findDatabase(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<string> {
  await requireData(config);
  const url = await findDatabaseUrl(config);
  if (url !== undefined) return url;
  throw new CommandFailed(
    `Nothing runs on ${config.dataDir}. Run \`sluice start\` there, or set DATABASE_URL.`,
  );
}
