import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { TestProject } from 'vitest/node';
import { prepareDatabase, provideDatabase } from '../../src/queue/provide-database.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A data directory whose database is up to date, with nothing in it: to be copied, never to be used itself. */
    preparedDataDir: string;
  }
}

/** Run by vitest before the files of a project: making one takes as long as most tests of commands. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-made-'));
  const log = pino({ level: 'silent' });
  const database = await provideDatabase({ databaseUrl: null, dataDir: folder }, log, { share: false });
  await prepareDatabase(database.url, true, log).finally(() => database.stop());
  project.provide('preparedDataDir', folder);
  return () => rm(folder, { recursive: true, force: true });
}
