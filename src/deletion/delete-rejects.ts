import { MAX_REJECT_RAW_BYTES } from '../domain/limits.ts';
import { deleteRejects, findLoadsWithRejects } from '../postgres/deletion/earlier-loads.ts';
import { readRejectsPage } from '../postgres/ledger/read-rejects.ts';
import { readIds } from '../postgres/stores/deletions.ts';
import { yielding } from '../yielding.ts';
import type { Attempt } from './context.ts';
import { createIdMatcher } from './id-matcher.ts';

/** Rejects held at a time. */
const atATime = { rows: 100, bytes: 4 * 1024 * 1024, rawBytes: MAX_REJECT_RAW_BYTES };

/** Removes the refused records of earlier loads that hold one of the ids. Whoever takes over looks at all of them again. */
export async function deleteMatchingRejects({ context, deletion, step, goOn }: Attempt): Promise<void> {
  const matches = createIdMatcher(await readIds(context.db, deletion.deletionId));
  for (const loadId of await findLoadsWithRejects(context.db, deletion.deletionId)) {
    for (let after = 0; ; ) {
      goOn();
      const { rejects, more } = await readRejectsPage(context.db, loadId, after, atATime);
      const doomed: number[] = [];
      for await (const { raw, row } of yielding(rejects)) {
        goOn();
        if (matches(raw)) doomed.push(row);
      }
      if (doomed.length > 0) await step(async (db) => ({ rejects: await deleteRejects(db, loadId, doomed) }));
      const last = rejects.at(-1);
      if (last === undefined || !more) break;
      after = last.row;
    }
  }
}
