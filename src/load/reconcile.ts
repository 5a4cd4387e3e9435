import { sql } from 'kysely';
import pLimit from 'p-limit';
import { jobFields } from '../domain/job-fields.ts';
import { MAX_CHUNK_LOSSES, RECONCILE_MS } from '../domain/limits.ts';
import { rescueChunks } from '../postgres/ledger/chunks.ts';
import { rescueFinishes } from '../postgres/ledger/finish.ts';
import { idleLanes } from '../postgres/ledger/lanes.ts';
import { isFree } from '../postgres/ledger/lease.ts';
import { endSilentSessions } from '../postgres/ledger/sessions.ts';
import { type Rounds, startRounds } from '../rounds.ts';
import type { LoadContext } from './context.ts';
import { dispatchChunks, dispatchLane, ringQuietly } from './dispatch.ts';
import { failLoad } from './end-load.ts';

/** A chunk that the queue was told of and nobody took is told again after this long. */
const ringAgainMs = 5_000;
/** A standing lane must not wait for a slow one, nor all of them take every connection. */
const lanesAtATime = 4;

/**
 * Reads the ledger for what should be under way and is not, and rings for it: chunks whose worker vanished,
 * chunks the queue forgot, loads that nobody finished, lanes that stand still. Harmless to run anywhere, anytime,
 * twice.
 */
export async function reconcile(context: LoadContext): Promise<void> {
  await rescue(context);
  const running = await context.db
    .selectFrom('loads')
    .select([
      'load_id',
      'finish_attempt',
      sql<boolean>`chunks_done = chunk_count`.as('all_done'),
      sql<boolean>`not exists (
        select
        from load_chunks c
        where c.load_id = loads.load_id and c.state = 'running'
      )`.as('stalled'),
    ])
    .where('status', '=', 'processing')
    .where(isFree('finish_lease_until'))
    .execute();
  const atATime = pLimit(lanesAtATime);
  await Promise.all(
    running.map((load) =>
      atATime(async () => {
        if (!load.all_done) await dispatchChunks(context, load.load_id, ringAgainMs, load.stalled);
        else await ringFinish(context, load.load_id, load.finish_attempt);
      }),
    ),
  );
  const idle = await idleLanes(context.db);
  await Promise.all(idle.map((environmentId) => atATime(() => dispatchLane(context, environmentId))));
}

function ringFinish(context: LoadContext, loadId: number, attempt: number): Promise<void> {
  return ringQuietly(context, () => context.bell.ringFinish(loadId, attempt, 'again'));
}

async function rescue(context: LoadContext): Promise<void> {
  await endSilentSessions(context.db);
  for (const lost of await rescueChunks(context.db)) {
    const { loadId, chunkNo, losses } = lost;
    const fields = { ...jobFields(lost), chunk: chunkNo, losses };
    context.log.warn(fields, 'chunk taken back from a worker that went silent');
    if (losses < MAX_CHUNK_LOSSES) continue;
    await failLoad(context, loadId, {
      code: 'worker_lost',
      message: `chunk ${chunkNo} lost its worker ${losses} times; it may be what kills it`,
    });
  }
  for (const lost of await rescueFinishes(context.db)) {
    const { loadId, losses } = lost;
    context.log.warn({ ...jobFields(lost), losses }, 'finish taken back from a worker that went silent');
    if (losses < MAX_CHUNK_LOSSES) continue;
    await failLoad(context, loadId, {
      code: 'worker_lost',
      message: `the finish lost its worker ${losses} times; it may be what kills it`,
    });
  }
}

/** Reconciles at once and then every RECONCILE_MS; errors are logged and the next round tries again. */
export function startReconciler(context: LoadContext, everyMs = RECONCILE_MS): Rounds {
  return startRounds(everyMs, async () => {
    await reconcile(context).catch((error: unknown) =>
      context.log.warn({ err: error }, 'reconciling failed; next round tries again'),
    );
  });
}
