import { sql } from 'kysely';
import type { LoadEntity } from '../../domain/entity.ts';
import { Fault } from '../../domain/errors.ts';
import type { Guards, LoadPass, PlanSummary, Preset, StoredFormat, Tally } from '../../domain/load.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { Database } from '../database.ts';

/* What tasks read of a load that runs: those of its chunks, and the one that finishes it. Its steps are in loads.ts. */

/** What a worker must know of a load to do any of its chunks. Changes between two passes, never while there are tasks of one. */
export interface LoadSource {
  readonly loadId: number;
  readonly jobId: string;
  readonly environmentId: number;
  readonly entity: LoadEntity;
  /** As `Instant` writes it. */
  readonly acceptedAt: string;
  readonly fileRef: FileRef | null;
  readonly fileFormat: StoredFormat;
  readonly header: CsvHeader | null;
  readonly columnMap: Readonly<Record<string, string>>;
  readonly preset: Preset | null;
  readonly pass: LoadPass;
  /** The pass writes neither profiles nor events. */
  readonly dryRun: boolean;
  readonly chunkCount: number;
  readonly maxErrors: number | null;
  /** Secret of the environment: see `digestKey`. */
  readonly recordKey: string;
  /** Its records yield to what stands later: see `src/load/amend/place.ts`. Null: they count as of now. */
  readonly place: Place | null;
}

/** Of an amendment whose records count as of their place in the file of its parent. `acceptedAt` is the parent's. */
export interface Place {
  readonly parentId: number;
}

export async function readLoadSource(db: Database, loadId: number): Promise<LoadSource> {
  const row = await db
    .selectFrom('loads')
    .innerJoin('environments', 'environments.environment_id', 'loads.environment_id')
    .leftJoin('loads as parent', (join) =>
      join.onRef('parent.load_id', '=', 'loads.amends').on('loads.wins', '=', false),
    )
    .select([
      'loads.job_id',
      'loads.environment_id',
      'loads.entity',
      'loads.file_ref',
      'loads.file_format',
      'loads.header',
      'loads.column_map',
      'loads.preset',
      'loads.pass',
      'loads.dry_run',
      'loads.chunk_count',
      'loads.max_errors',
      'record_key',
      'parent.load_id as parent_id',
    ])
    .select(
      sql<string>`to_char(
        coalesce(parent.accepted_at, loads.accepted_at) at time zone 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
      )`.as('accepted_at'),
    )
    .where('loads.load_id', '=', loadId)
    .executeTakeFirst();
  if (row === undefined) throw new Fault(`load ${loadId} is not in the ledger`);
  return {
    loadId,
    jobId: row.job_id,
    environmentId: row.environment_id,
    entity: row.entity as LoadEntity,
    acceptedAt: row.accepted_at,
    fileRef: row.file_ref as FileRef | null,
    fileFormat: row.file_format as StoredFormat,
    header: row.header as CsvHeader | null,
    columnMap: row.column_map as Readonly<Record<string, string>>,
    preset: row.preset as Preset | null,
    pass: row.pass as LoadPass,
    dryRun: row.dry_run,
    chunkCount: row.chunk_count,
    maxErrors: row.max_errors,
    recordKey: row.record_key,
    place: row.parent_id === null ? null : { parentId: row.parent_id },
  };
}

/** What is looked at before a load is completed. */
export interface FinishState {
  readonly jobId: string;
  readonly totalRows: number;
  /** It mends refused records of another load. */
  readonly isAmendment: boolean;
  /** Chunks that are not done; none, if the counter of done chunks tells the truth. */
  readonly openChunks: number;
  readonly pass: LoadPass;
  readonly guards: Guards;
  readonly plan: PlanSummary | null;
  readonly tally: Tally;
  /** Whether the counts by kind, where there are any, add up to these. */
  readonly kindsAddUp: boolean;
}

const kindsAddUp = sql<boolean>`coalesce(
  (
    select
      (sum(n.rows_inserted), sum(n.rows_updated), sum(n.rows_unchanged), sum(n.rows_superseded), sum(n.rows_rejected), sum(n.rows_amended))
      = (loads.rows_inserted, loads.rows_updated, loads.rows_unchanged, loads.rows_superseded, loads.rows_rejected, loads.rows_amended)
    from load_kinds n
    where n.load_id = loads.load_id
  ),
  true
)`;

export async function readFinishState(db: Database, loadId: number): Promise<FinishState> {
  const row = await db
    .selectFrom('loads')
    .select([
      'job_id',
      'total_rows',
      'amends',
      'pass',
      'max_errors',
      'max_changed',
      'max_removed_values',
      'plan',
      'rows_read',
      'rows_inserted',
      'rows_updated',
      'rows_unchanged',
      'rows_superseded',
      'rows_rejected',
      'rows_amended',
      sql<number>`(
        select count(*)
        from load_chunks c
        where c.load_id = loads.load_id and c.done_at is null
      )`.as('open_chunks'),
      kindsAddUp.as('kinds_add_up'),
    ])
    .where('load_id', '=', loadId)
    .executeTakeFirstOrThrow();
  return {
    jobId: row.job_id,
    totalRows: row.total_rows,
    isAmendment: row.amends !== null,
    openChunks: row.open_chunks,
    pass: row.pass as LoadPass,
    guards: {
      maxErrors: row.max_errors,
      maxChanged: row.max_changed,
      maxRemovedValues: row.max_removed_values,
    },
    plan: row.plan as PlanSummary | null,
    kindsAddUp: row.kinds_add_up,
    tally: {
      read: row.rows_read,
      inserted: row.rows_inserted,
      updated: row.rows_updated,
      unchanged: row.rows_unchanged,
      superseded: row.rows_superseded,
      rejected: row.rows_rejected,
      amended: row.rows_amended,
    },
  };
}
