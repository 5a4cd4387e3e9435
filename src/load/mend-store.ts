import { type RawBuilder, sql } from 'kysely';
import { camel } from '../postgres/columns.ts';
import { type Database, selectWhere } from '../postgres/database.ts';
import { MAX_SHOWN_MENDS } from './limits.ts';

/*
 * A mend is a load of corrected rejects. Each record of a mend corrects a record that an earlier
 * load refused.
 */

export type Mended = NonNullable<Awaited<ReturnType<typeof readMended>>>;

/**
 * Returns how a load read its file, so that its corrected rejects can be read in the same way.
 * Returns `null` if the environment has no such load, or if the load wrote its own file.
 */
export async function readMended(db: Database, environmentId: number, jobId: string) {
  const row = await selectWhere(db, 'loads', { environmentId, jobId })
    .select(camel('job_id', 'load_id', 'entity', 'preset', 'header'))
    .select('column_map as map')
    .where('own_file', '=', false)
    .executeTakeFirst();
  if (row === undefined) return null;
  const { header, ...columns } = row;
  return { ...columns, types: header?.types };
}

/**
 * Returns the load whose rejects this load corrects, together with the file of this load. Returns
 * `null` if this load corrects no rejects, has no file, or is in a pass that does not load records.
 */
export async function readMending(db: Database, loadId: number) {
  const row = await db
    .selectFrom('loads')
    .innerJoin('load_lineage', 'load_lineage.load_id', 'loads.load_id')
    .innerJoin('loads as mended', 'mended.load_id', 'load_lineage.mends')
    .select(camel('mended.load_id', 'mended.job_id', 'loads.header', 'loads.file_ref'))
    .where('loads.load_id', '=', loadId)
    .where('loads.pass', '=', 'load')
    .executeTakeFirst();
  const fileRef = row?.fileRef ?? null;
  return row === undefined || fileRef === null ? null : { ...row, fileRef };
}

export interface MendedRow {
  readonly row: number;
  readonly mendedRow: number;
}

export async function insertMends(
  db: Database,
  mendedBy: number,
  loadId: number,
  rows: readonly MendedRow[],
): Promise<void> {
  const [numbers, mendedNumbers] = [rows.map(({ row }) => row), rows.map(({ mendedRow }) => mendedRow)];
  await sql`
    insert into load_mends (load_id, row_number, mended_by, mended_row)
    select ${loadId}, row_number, ${mendedBy}, mended_row
    from unnest(${numbers}::bigint[], ${mendedNumbers}::bigint[]) as r (row_number, mended_row)
    on conflict do nothing`.execute(db);
}

export interface LoadedSince {
  readonly count: number;
  readonly jobs: readonly string[];
}

/**
 * SQL expression: how many refused records of a load have since been loaded from corrected files,
 * and by which jobs. Records that were refused and corrected several times are included. Jobs whose
 * changes were taken back do not count.
 */
export const loadedSince = (load: RawBuilder<unknown>): RawBuilder<LoadedSince> => sql`(
  select json_build_object(
    'count', count(distinct m.row_number),
    'jobs', coalesce((array_agg(distinct l.job_id))[:${sql.lit(MAX_SHOWN_MENDS)}], '{}')
  )
  from mended_since(${load}) m
  join loads l on l.load_id = m.mended_by
)`;
