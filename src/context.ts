import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import { createFileSystemStore } from './files/file-system.ts';
import { type LoadContext, type LoadSeams, noSeams } from './load/context.ts';
import { Experience } from './load/experience.ts';
import { createDatabase } from './postgres/database.ts';
import { createPool } from './postgres/pool.ts';
import { createQueueBackend, type QueueBackend } from './queue/backend.ts';
import { createQueueBell } from './queue/queue-bell.ts';

/** One running system: what every surface (HTTP, CLI, worker) is built on. */
export interface System extends LoadContext {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly backend: QueueBackend;
  /** Closes everything in the reverse order of opening. */
  close(): Promise<void>;
}

export interface SystemOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly log: Logger;
  /** Shown in pg_stat_activity and in logs. */
  readonly role: string;
  readonly poolSize: number;
  readonly seams?: LoadSeams;
}

/** Composition root. The database must be migrated (`prepareDatabase`). */
export function openSystem(options: SystemOptions): System {
  const { config, databaseUrl, log } = options;
  const pool = createPool({
    url: databaseUrl,
    max: options.poolSize,
    applicationName: `sluice ${options.role}`,
  });
  pool.on('error', (error) => log.warn({ err: error }, 'idle database connection lost'));
  const backend = createQueueBackend({ databaseUrl, redisUrl: config.redisUrl });
  const bell = createQueueBell(backend, (error) => log.warn({ err: error }, 'queue error'));
  return {
    config,
    databaseUrl,
    backend,
    pool,
    db: createDatabase(pool),
    files: createFileSystemStore(config.filesDir),
    bell,
    log,
    seams: options.seams ?? noSeams,
    experience: new Experience(),
    async close() {
      await bell.close();
      await backend.close();
      await endPool(pool);
    },
  };
}

async function endPool(pool: pg.Pool): Promise<void> {
  if (!pool.ended) await pool.end();
}
