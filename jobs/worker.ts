import { hostname } from 'node:os';
import { sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import type { System } from '../src/context.ts';
import { startReconciler } from '../src/load/reconcile.ts';
import { consume } from '../src/queue/consume.ts';
import { finishLoadJob } from './finish-load.ts';
import { processChunkJob } from './process-chunk.ts';
import { pruneFilesJob } from './prune-files.ts';

const signOfLifeMs = 5_000;

export interface RunningWorker {
  /** Finishes the jobs under way and takes no more. */
  stop(): Promise<void>;
}

/** One worker: consumes the queue, reconciles the ledger, and says that it lives. */
export function startWorker(system: System): RunningWorker {
  const { log, config } = system;
  const consumer = consume(
    system.backend,
    {
      'process-chunk': processChunkJob(system),
      'finish-load': finishLoadJob(system),
      'prune-files': pruneFilesJob(system),
    },
    { concurrency: config.workerConcurrency, log },
  );
  const reconciler = startReconciler(system);
  const life = showLife(system);
  return {
    async stop() {
      await reconciler.stop();
      await consumer.close();
      await life.stop();
    },
  };
}

function showLife({ db, log }: System): RunningWorker {
  const id = uuidv7();
  const show = (): void => {
    db.insertInto('workers')
      .values({ worker_id: id, host: hostname(), pid: process.pid })
      .onConflict((conflict) => conflict.column('worker_id').doUpdateSet({ seen_at: sql`now()` }))
      .execute()
      .catch((error: unknown) => log.debug({ err: error }, 'sign of life failed'));
  };
  show();
  const timer = setInterval(show, signOfLifeMs);
  return {
    async stop() {
      clearInterval(timer);
      await db
        .deleteFrom('workers')
        .where('worker_id', '=', id)
        .execute()
        .catch(() => undefined);
    },
  };
}
