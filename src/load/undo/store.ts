import { type RawBuilder, sql } from 'kysely';
import { TransientError } from '../../base/errors.ts';
import type { ChunkRange } from '../../domain/load.ts';
import type { FileRef } from '../../files/file-store.ts';
import { camel } from '../../postgres/columns.ts';
import { type Database, deleteWhere, updateWhere } from '../../postgres/database.ts';
import { insertChunks } from '../store.ts';
import { takeReceived } from '../upload-store.ts';

export type Undoable = Awaited<ReturnType<typeof readUndoable>>[number];

export async function readUndoable(db: Database, environmentId: number, jobIds: readonly string[]) {
  return db
    .selectFrom('loads as l')
    .select(camel('l.load_id', 'l.job_id', 'l.type', 'l.status', 'l.filename', 'l.total_rows', 'l.dry_run'))
    .select([sql<boolean>`${isLogged(sql.ref('l.load_id'))}`.as('isLogged')])
    .where('l.environment_id', '=', environmentId)
    .where('l.job_id', 'in', jobIds)
    .orderBy('l.load_id')
    .execute();
}

/** Tells whether all that a load wrote is in the log. Nothing is if that is off. */
const isLogged = (loadId: RawBuilder<unknown>) => sql<boolean>`not exists (
  select 1
  from load_chunks c
  cross join unnest(c.positions) position
  where c.load_id = ${loadId} and (position >= (select complete_since from change_log)) is not true
)`;

/** Tells the same of several, which have not been pruned. */
const areLogged = (loadIds: RawBuilder<unknown>) => sql<boolean>`(
  select bool_and(${isLogged(sql.ref('id'))} and exists (select 1 from loads l where l.load_id = id))
  from unnest(${loadIds}) id
)`;

/** The loads that an undo concerns, for the selects below. */
export interface UndoSource {
  readonly environmentId: number;
  readonly isLogged: boolean;
  /** The loads that cease to count: what they changed may go back. One that another undo has undone is not among them. */
  readonly loads: readonly number[];
  /** All loads that were ever undone, with the transactions in which their chunks were written. */
  readonly known: ReadonlyMap<number, readonly string[]>;
  /** Authors that do not count afterwards: all loads that were ever undone, and their undos. */
  readonly out: ReadonlySet<number>;
  /** Undos that ran after the loads began. */
  readonly undos: readonly number[];
  /** Loads that these undid: what is stored from before the undone loads may hold too much of them. */
  readonly others: readonly number[];
}

interface Undo {
  readonly loadId: number;
  readonly undoes: readonly number[];
  readonly lane: number;
}

/** Returns `null` if the load is not an undo. */
export async function readUndoSource(db: Database, loadId: number): Promise<UndoSource | null> {
  const { rows } = await sql<
    Pick<UndoSource, 'environmentId' | 'isLogged'> &
      Pick<Undo, 'undoes'> & { readonly earlier: readonly Undo[] }
  >`
    select
      u.environment_id as "environmentId",
      to_json(n.undoes) as undoes,
      ${areLogged(sql.ref('n.undoes'))} as "isLogged",
      (
        select coalesce(json_agg(json_build_object(
          'loadId', o.load_id, 'undoes', e.undoes, 'lane', o.lane_position
        )), '[]')
        from load_undos e
        join loads o using (load_id)
        where o.environment_id = u.environment_id and o.load_id <> u.load_id
          and o.status = 'completed' and not o.dry_run and ${areLogged(sql.ref('e.undoes'))}
      ) as earlier
    from load_undos n
    join loads u using (load_id)
    where u.load_id = ${loadId}`.execute(db);
  const [undo] = rows;
  if (undo === undefined) return null;
  const { environmentId, isLogged, undoes, earlier } = undo;
  const undone = new Set(earlier.flatMap((one) => one.undoes));
  const loads = undoes.filter((load) => !undone.has(load));
  const all = [...new Set([...undone, ...undoes])];
  const { rows: known } = await sql<{ loadId: number; lane: number; positions: readonly string[] }>`
    select
      load_id as "loadId", case when attempts = 1 then lane_position else 0 end as lane,
      array(select p::text from load_chunks c cross join unnest(c.positions) p where c.load_id = loads.load_id) as positions
    from loads
    where load_id = any(${all})`.execute(db);
  const began = Math.min(...known.flatMap(({ loadId: id, lane }) => (loads.includes(id) ? [lane] : [])));
  const later = earlier.filter(({ lane }) => lane > began);
  return {
    environmentId,
    isLogged,
    loads,
    known: new Map(known.map((load) => [load.loadId, load.positions])),
    out: new Set([...all, ...earlier.map((one) => one.loadId)]),
    undos: later.map((one) => one.loadId),
    others: later.flatMap((one) => one.undoes),
  };
}

/** A reverse patch that was written. */
export interface WrittenFile {
  readonly ref: FileRef;
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
  readonly rows: number;
  readonly chunks: readonly ChunkRange[];
}

/** Gives an undo its new file; an earlier one is left to the sweep. Throws `TransientError` if the new one was swept already. */
export async function attachPatch(
  db: Database,
  loadId: number,
  { chunks, ...file }: WrittenFile,
): Promise<void> {
  if (!(await takeReceived(db, file.ref))) throw new TransientError('the file waited too long for its load');
  await sql`
    insert into received_files (file_ref)
    select file_ref from loads where load_id = ${loadId} and file_ref is not null`.execute(db);
  await deleteWhere(db, 'load_chunks', { loadId }).execute();
  await updateWhere(db, 'loads', { loadId })
    .set({
      file_ref: file.ref,
      file_size: file.bytes,
      sha256: Buffer.from(file.sha256, 'hex'),
      total_rows: file.rows,
      chunk_count: chunks.length,
      chunks_done: 0,
    })
    .execute();
  await insertChunks(db, loadId, chunks);
}
