import { uuidv7 } from 'uuidv7';
import { type ArchivedEvent, readArchive } from '../export/read-archives.ts';
import { countErased } from '../postgres/deletion/archived-events.ts';
import {
  type Archive,
  archiveFolder,
  findArchives,
  forgetArchive,
  noteArchive,
  replaceArchive,
} from '../postgres/stores/archives.ts';
import { readIds } from '../postgres/stores/deletions.ts';
import { checkArchive, rewriteArchive } from '../retention/archive-events.ts';
import type { Attempt } from './context.ts';

/**
 * Removes the events of the users, or takes the companies from theirs, in the archives of the environment that were stored
 * after one: each that holds any is written anew. Reads all of them, whoever's events they hold. What was done is not found
 * again by whoever takes over. Returns the last that there was.
 */
export async function eraseArchived(attempt: Attempt, after = 0): Promise<number> {
  const { context, deletion } = attempt;
  const archives = await findArchives(context.db, deletion.environmentId, { after });
  if (archives.length === 0) return after;
  const ids = new Set<string | null>(await readIds(context.db, deletion.deletionId));
  const idOf = ({ user_id, company_id }: ArchivedEvent): string | null =>
    deletion.entity === 'users' ? user_id : company_id;
  for (const archive of archives) {
    const found = await countMatches(attempt, archive, (event) => ids.has(idOf(event)), idOf);
    if (found.size > 0) await erase(attempt, archive, found, (event) => ids.has(idOf(event)));
  }
  return Math.max(...archives.map(({ archiveId }) => archiveId));
}

async function countMatches(
  { context, goOn }: Attempt,
  archive: Archive,
  isMeant: (event: ArchivedEvent) => boolean,
  idOf: (event: ArchivedEvent) => string | null,
): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for await (const events of readArchive(context.files, archive)) {
    goOn();
    for (const event of events) {
      const id = isMeant(event) ? idOf(event) : null;
      if (id !== null) found.set(id, (found.get(id) ?? 0) + 1);
    }
  }
  return found;
}

async function erase(
  { context, deletion, step, goOn }: Attempt,
  archive: Archive,
  found: ReadonlyMap<string, number>,
  isMeant: (event: ArchivedEvent) => boolean,
): Promise<void> {
  const { db, files } = context;
  const { deletionId, environmentId, entity } = deletion;
  const folder = archiveFolder(uuidv7());
  await noteArchive(db, folder, { environmentId, month: archive.month, retirementId: null });
  const written = await rewriteArchive(
    files,
    archive,
    () => files.create(folder),
    (event) => {
      goOn();
      if (!isMeant(event)) return event;
      return entity === 'users' ? null : { ...event, company_id: null };
    },
  );
  const by = written === null ? null : await checkArchive(files, written);
  await step(async (transaction) => {
    await replaceArchive(transaction, archive, by);
    return { events: await countErased(transaction, deletionId, found) };
  });
  if (by === null) await forgetArchive(db, folder);
}
