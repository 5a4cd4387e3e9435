// The stored files that the ledger of a database names: a backup takes them along, a restore looks which of them it lacks.
import type pg from 'pg';
import { MAX_SHOWN_COLUMNS, STORED_FILES_AT_A_TIME } from '../../domain/limits.ts';
import { checkRef, type FileRef } from '../../files/file-store.ts';
import { type Database, deleteWhere } from '../database.ts';
import { markFilesExpired } from '../stores/exports.ts';
import { forgetFiles } from '../stores/loads.ts';
import type { DatabaseSource } from './read-database.ts';

export interface StoredFile {
  readonly ref: FileRef;
  /** Work under way cannot continue without the file, or nothing else holds its content. */
  readonly isNeeded: boolean;
}

/** Selects the files that each table names, and whether they are needed. Earlier versions lack some of the tables. */
const references: Readonly<Record<string, string>> = {
  loads: `select file_ref, ended_at is null from sluice.loads where file_ref is not null`,
  upload_parts: `select file_ref, false from sluice.upload_parts join sluice.uploads using (upload_id) where expires_at > now()`,
  lake_files: `select file_ref, true from sluice.lake_files where state = 'stored'`,
  export_files:
    'select file_ref, false from sluice.export_files join sluice.exports using (export_id) where files_expired_at is null',
};

/** A backup leaves out sealed files of ended work, as if they had expired: it may outlive their keys. */
function selectReferences({ shape }: DatabaseSource): string {
  const there = new Set(shape.tables.map(({ name }) => name));
  const selects = Object.entries(references).flatMap(([table, select]) => (there.has(table) ? [select] : []));
  return `select file_ref as ref, bool_or(is_needed) as "isNeeded"
    from (${selects.join(' union all ')}) r (file_ref, is_needed)
    group by file_ref
    having bool_or(is_needed) or file_ref not like '%.sealed'`;
}

/** Yields the files of the snapshot, those that are needed first: they must not go meanwhile. */
export async function* storedFiles(source: DatabaseSource): AsyncGenerator<StoredFile> {
  const select = `${selectReferences(source)} order by "isNeeded" desc, ref`;
  for await (const { ref, isNeeded } of fetchAll<StoredFile>(source.client, select))
    yield { ref: checkRef(ref), isNeeded };
}

/** Returns which of the files a snapshot names, and whether it needs them. */
export async function findListed(
  source: DatabaseSource,
  refs: readonly FileRef[],
): Promise<ReadonlyMap<FileRef, boolean>> {
  const { rows } = await source.client.query<StoredFile>(
    `select ref, "isNeeded" from (${selectReferences(source)}) r where ref = any ($1)`,
    [refs],
  );
  return new Map(rows.map(({ ref, isNeeded }) => [ref, isNeeded]));
}

interface EndedWork {
  readonly kind: 'load' | 'export' | 'upload';
  readonly id: string;
  readonly ref: FileRef;
}

/**
 * Makes ended work whose files are missing look as if they had expired, and returns how many jobs that were. Work under way and
 * the lake cannot do without theirs, and report it themselves.
 */
export async function forgetMissing(
  client: pg.Client,
  db: Database,
  isMissing: (ref: FileRef) => Promise<boolean>,
): Promise<number> {
  const forgotten = new Set<string>();
  await client.query('begin read only');
  const ended = fetchAll<EndedWork>(
    client,
    `select 'load' as kind, load_id::text as id, file_ref as ref from sluice.loads where file_ref is not null and ended_at is not null
     union all
     select 'export', export_id::text, file_ref from sluice.export_files join sluice.exports using (export_id) where files_expired_at is null
     union all
     select 'upload', upload_id::text, file_ref from sluice.upload_parts`,
  );
  for await (const { kind, id, ref } of ended) {
    if (forgotten.has(`${kind} ${id}`) || !(await isMissing(checkRef(ref)))) continue;
    forgotten.add(`${kind} ${id}`);
    if (kind === 'load') await forgetFiles(db, [Number(id)]);
    else if (kind === 'export') await markFilesExpired(db, Number(id));
    else await deleteWhere(db, 'uploads', { uploadId: id }).execute();
  }
  await client.query('commit');
  return forgotten.size;
}

/** Yields the rows of a select, page by page, in the transaction under way. */
async function* fetchAll<T extends pg.QueryResultRow>(client: pg.Client, select: string): AsyncGenerator<T> {
  await client.query(`declare stored_files no scroll cursor for ${select}`);
  for (;;) {
    const { rows } = await client.query<T>(`fetch ${STORED_FILES_AT_A_TIME} from stored_files`);
    yield* rows;
    if (rows.length < STORED_FILES_AT_A_TIME) return;
  }
}

/** Lists tables and views of other schemas, which a backup leaves out, up to MAX_SHOWN_COLUMNS. */
export async function listOthers({ client }: DatabaseSource): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select c.oid::regclass::text as name
     from pg_class c
     join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
       and n.nspname not in ('sluice', 'bullmq', 'information_schema') and n.nspname !~ '^pg_'
     order by 1
     limit ${MAX_SHOWN_COLUMNS}`,
  );
  return rows.map(({ name }) => name);
}
