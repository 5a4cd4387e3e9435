import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { DataDirInUseError } from '../../postgres/embedded/errors.ts';
import { type ProvidedDatabase, provideDatabase } from '../../postgres/provide.ts';

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
      if (!(error instanceof DataDirInUseError) || performance.now() > deadline) throw error;
    }
    await delay(pollMs);
  }
}
