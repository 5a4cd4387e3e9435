import { setTimeout as delay } from 'node:timers/promises';
import { TransientError } from '../../domain/errors.ts';
import { JOIN_POLL_MS, MAX_JOIN_WAIT_MS } from '../../domain/limits.ts';
import type { TaskClaim } from '../../domain/task.ts';
import { CountingLoads } from '../../domain/undo.ts';
import { inTransaction } from '../../postgres/database.ts';
import {
  claimAliases,
  filledProfiles,
  joinedEvents,
  joinedProfiles,
  readersOfAliases,
} from '../../postgres/stores/joins.ts';
import { readUndoSource, type WrittenFile } from '../../postgres/stores/undo.ts';
import type { LoadContext } from '../context.ts';
import { writePatch, writePatchFile } from './write-patch.ts';

/*
 * A join: a load that moves what was stored under aliases to their persons. Its file is a patch as that of an undo, and is undone as any
 * load. Promise: when it ends, nothing is left under its aliases and nothing is lost or doubled, whoever wrote meanwhile.
 */

/** Writes the file of an undo or a join; returns `null` for other loads. */
export async function writeOwnFile(
  context: LoadContext,
  claim: TaskClaim,
  signal: AbortSignal,
): Promise<WrittenFile | null> {
  const { subjectId } = claim;
  if (await inTransaction(context.pool, ({ db }) => claimAliases(db, subjectId))) {
    await waitForReaders(context, signal);
    const selects = [filledProfiles(subjectId), joinedProfiles(subjectId), joinedEvents(subjectId)];
    return writePatchFile(context, claim, signal, nothingUndone, selects);
  }
  const undo = await readUndoSource(context.db, subjectId);
  return undo && writePatch(context, claim, undo, signal);
}

const nothingUndone = {
  counting: new CountingLoads({ loadId: 0, undoes: [], properties: null }, []),
  known: new Map(),
};

/** Waits until all have ended who may write without knowing the aliases and suppressions: from then on nothing comes under them. */
export async function waitForReaders({ db }: LoadContext, signal: AbortSignal): Promise<void> {
  const until = performance.now() + MAX_JOIN_WAIT_MS;
  for (let left = await readersOfAliases(db); left.length > 0; left = await readersOfAliases(db, left)) {
    if (performance.now() > until) throw new TransientError('a transaction that writes records does not end');
    await delay(JOIN_POLL_MS, undefined, { signal });
  }
}
