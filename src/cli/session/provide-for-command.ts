import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { embeddedPostgres } from '../../embedded-postgres/embedded-postgres.ts';
import { isNewDatabase, type ProvidedDatabase, provideDatabase } from '../../postgres/provide.ts';
import { UsageError } from '../exit-codes.ts';
import type { Terminal } from '../terminal.ts';

const patienceMs = 30_000;
const pollMs = 100;

/**
 * The database for a command that a person runs: the server that runs on the data directory, or one of its own for as
 * long as the command takes. One that another command is just starting or stopping is waited for.
 */
export async function provideForCommand(config: Config, log: Logger): Promise<ProvidedDatabase> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      return await provideDatabase(config, log, { share: true });
    } catch (error) {
      if (!embeddedPostgres.isInUse(error) || performance.now() > deadline) throw error;
    }
    await delay(pollMs);
  }
}

/** A command that only looks or changes must not make a database where there is none, and answer from that. */
export async function requireData(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<void> {
  if (!(await isNewDatabase(config))) return;
  throw new UsageError(
    `There is no data of sluice in ${config.dataDir}: nothing was ever started there.\n` +
      'Run this in the folder where the server was started, or name its data: --data-dir <folder> (DATA_DIR),\n' +
      'or --database-url <url> (DATABASE_URL). `sluice start` or `sluice import` begins anew here.',
  );
}

/** Those that may make one say where. */
export async function announceNewData(
  terminal: Terminal,
  config: Pick<Config, 'databaseUrl' | 'dataDir'>,
): Promise<void> {
  if (await isNewDatabase(config)) terminal.note(`Making a new database in ${config.dataDir}`);
}
