import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { TestProject } from 'vitest/node';
import { prepareDatabase, provideDatabase } from '../../../src/queue/provide-database.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Path of an empty data directory with a migrated database. A test must use a copy. */
    preparedDataDir: string;
  }
}

/**
 * Creates the data directory. vitest calls this once per project, because it takes as long as a
 * typical test.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-made-'));
  const log = pino({ level: 'silent' });
  const database = await provideDatabase({ databaseUrl: null, dataDir: folder }, log, { share: false });
  await prepareDatabase(database.url, true, log).finally(() => database.stop());
  project.provide('preparedDataDir', folder);
  return () => rm(folder, { recursive: true, force: true });
}
