import { deleteRejects, findLoadsWithRejects } from '../postgres/deletion/earlier-loads.ts';
import { readIds } from '../postgres/ledger/deletions.ts';
import { readRejectsPage } from '../postgres/ledger/read-rejects.ts';
import { yielding } from '../yielding.ts';
import type { Attempt } from './attempt.ts';
import { createIdMatcher } from './id-matcher.ts';

/** Rejects held at a time; each is at most MAX_REJECT_RAW_BYTES. */
const rowsAtATime = 100;

/** Removes the refused records of earlier loads that hold one of the ids. Whoever takes over looks at all of them again. */
export async function deleteMatchingRejects({ context, claim, step, goOn }: Attempt): Promise<void> {
  const matches = createIdMatcher(await readIds(context.db, claim.deletionId));
  for (const loadId of await findLoadsWithRejects(context.db, claim.deletionId)) {
    for (let after = 0; ; ) {
      goOn();
      const page = await readRejectsPage(context.db, loadId, after, rowsAtATime);
      const doomed: number[] = [];
      for await (const { raw, row } of yielding(page)) {
        goOn();
        if (matches(raw)) doomed.push(row);
      }
      if (doomed.length > 0) await step(async (db) => ({ rejects: await deleteRejects(db, loadId, doomed) }));
      const last = page.at(-1);
      if (last === undefined || page.length < rowsAtATime) break;
      after = last.row;
    }
  }
}
