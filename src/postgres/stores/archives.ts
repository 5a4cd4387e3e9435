import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import type { FileFolder, FileRef } from '../../files/file-store.ts';
import { type Database, inTransaction } from '../database.ts';
import { lockEventStore } from './retirements.ts';

/** A file of archived events that exports read. */
export interface Archive {
  readonly archiveId: number;
  readonly folder: FileFolder;
  /** `2026-03-01` */
  readonly month: string;
  readonly ref: FileRef;
  readonly bytes: number;
  readonly rows: number;
  /** The times of its first and last event, in microseconds since 1970. */
  readonly firstMicros: number;
  readonly lastMicros: number;
}

/** A file that has been written, and read again. */
export interface WrittenArchive {
  readonly folder: FileFolder;
  readonly ref: string;
  readonly rows: number;
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
  readonly firstMicros: number;
  readonly lastMicros: number;
}

/** The origin of a file of events. */
export interface ArchivePlace {
  readonly environmentId: number;
  /** `2026-03-01` */
  readonly month: string;
  /** `null`: it is made of another archive. */
  readonly retirementId: number | null;
}

export function archiveFolder(uuid: string): FileFolder {
  return `archives/${uuid}` as FileFolder;
}

const uuidOf = (folder: FileFolder): string => folder.slice('archives/'.length);

/** Before anything is written: so that what a killed process leaves is known. */
export async function recordArchive(
  db: Database,
  folder: FileFolder,
  { environmentId, month, retirementId }: ArchivePlace,
): Promise<void> {
  await sql`
    insert into event_archives (folder, environment_id, month, retirement_id)
    values (${uuidOf(folder)}, ${environmentId}, ${month}::date, ${retirementId}::bigint)`.execute(db);
}

/** From the commit of this on exports read it. @throws if somebody has taken it for a dead process's. */
export async function storeArchive(db: Database, file: WrittenArchive): Promise<void> {
  const { numAffectedRows } = await sql`
    update event_archives
    set
      state = 'stored',
      file_ref = ${file.ref},
      row_count = ${file.rows},
      byte_count = ${file.bytes},
      sha256 = decode(${file.sha256}, 'hex'),
      first_at = ${instantOf(file.firstMicros)},
      last_at = ${instantOf(file.lastMicros)}
    where folder = ${uuidOf(file.folder)} and state = 'writing'`.execute(db);
  if (numAffectedRows !== 1n) throw new Error('an archive was taken for one that nobody writes');
}

/** Archives of an environment with events in a range (`from` included, `to` not), in the order of their first. */
export async function findArchives(
  db: Database,
  environmentId: number,
  {
    from,
    to,
    after = 0,
  }: { readonly from?: string | null; readonly to?: string; readonly after?: number } = {},
): Promise<Archive[]> {
  const { rows } = await sql<Archive>`
    select
      archive_id as "archiveId",
      'archives/' || folder as folder,
      month::text,
      file_ref as ref,
      byte_count as bytes,
      row_count as rows,
      ${microsOf('first_at')} as "firstMicros",
      ${microsOf('last_at')} as "lastMicros"
    from event_archives
    where environment_id = ${environmentId}
      and state = 'stored'
      and archive_id > ${after}
      and last_at >= coalesce(${from ?? null}::timestamptz, '-infinity')
      and first_at < coalesce(${to ?? null}::timestamptz, 'infinity')
    order by first_at, archive_id`.execute(db);
  return rows;
}

/** Exports that begin from the commit of this on read `by` instead, or nothing. */
export async function replaceArchive(
  db: Database,
  archive: Archive,
  by: WrittenArchive | null,
): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('event_archives')
    .set({ state: 'replaced' })
    .where('archive_id', '=', archive.archiveId)
    .where('state', '=', 'stored')
    .executeTakeFirst();
  if (numUpdatedRows !== 1n) throw new Error('an archive was replaced by somebody else');
  if (by !== null) await storeArchive(db, by);
}

/** Finds unfinished archives, which belong to killed processes if nobody archives events now. */
export async function findUnfinished(db: Database): Promise<FileFolder[]> {
  const { rows } = await sql<{ folder: string }>`
    select folder
    from event_archives
    where state = 'writing' and (retirement_id is not null or created_at < now() - interval '1 day')
    order by archive_id`.execute(db);
  return rows.map(({ folder }) => archiveFolder(folder));
}

export async function findReplaced(db: Database): Promise<FileFolder[]> {
  const { rows } = await sql<{ folder: string }>`
    select folder from event_archives where state = 'replaced' order by archive_id`.execute(db);
  return rows.map(({ folder }) => archiveFolder(folder));
}

/** Whoever read an archive before it was replaced has ended. @throws 55P03 if that takes long. */
export async function awaitReaders(pool: pg.Pool): Promise<void> {
  await inTransaction(pool, ({ db }) => lockEventStore(db));
}

export async function forgetArchive(db: Database, folder: FileFolder): Promise<void> {
  await sql`
    delete from event_archives
    where folder = ${uuidOf(folder)} and state <> 'stored'`.execute(db);
}

function microsOf(column: string): RawBuilder<number> {
  return sql`(extract(epoch from ${sql.ref(column)}) * 1000000)::bigint`;
}

function instantOf(micros: number): RawBuilder<Date> {
  return sql`(timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond')`;
}
