import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { hasData } from './embedded/data-version.ts';
import { findRunningPostgres } from './embedded/find-running.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded/start.ts';

type ProvideConfig = Pick<Config, 'databaseUrl' | 'dataDir'>;

export interface ProvidedDatabase {
  readonly url: string;
  /** The embedded server, if it was started here. */
  readonly embedded: EmbeddedPostgres | null;
  stop(): Promise<void>;
}

/** Whether the configuration asks for an embedded server that there is no data of yet: starting it makes a database. */
export async function isNewDatabase({ databaseUrl, dataDir }: ProvideConfig): Promise<boolean> {
  return databaseUrl === null && !(await hasData(join(dataDir, 'postgres')));
}

/**
 * The database that the configuration asks for: DATABASE_URL, or the embedded server of the data directory, which
 * is started unless it runs already and `share` allows to use it.
 */
export async function provideDatabase(
  config: ProvideConfig,
  log: Logger,
  options: { readonly share: boolean },
): Promise<ProvidedDatabase> {
  const nothing = async (): Promise<void> => undefined;
  if (config.databaseUrl !== null) return { url: config.databaseUrl, embedded: null, stop: nothing };
  const dataDir = join(config.dataDir, 'postgres');
  const running = options.share ? await findRunningPostgres(dataDir) : undefined;
  if (running !== undefined) return { url: running, embedded: null, stop: nothing };
  const embedded = await startEmbeddedPostgres({ dataDir, log });
  return { url: embedded.url, embedded, stop: () => embedded.stop() };
}
