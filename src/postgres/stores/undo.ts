import { type RawBuilder, sql } from 'kysely';
import { TransientError } from '../../domain/errors.ts';
import type { ChunkRange } from '../../domain/load.ts';
import { CountingLoads, type UndoOfLoads } from '../../domain/undo.ts';
import type { FileRef } from '../../files/file-store.ts';
import { camel } from '../columns.ts';
import { type Database, deleteWhere, updateWhere } from '../database.ts';
import { insertChunks } from './loads.ts';
import { takeReceived } from './uploads.ts';

export type Undoable = Awaited<ReturnType<typeof readUndoable>>[number];

/** The environment's loads of these jobs. */
export async function readUndoable(db: Database, environmentId: number, jobIds: readonly string[]) {
  return db
    .selectFrom('loads as l')
    .select(camel('l.load_id', 'l.job_id', 'l.status', 'l.filename', 'l.total_rows', 'l.dry_run'))
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
  readonly isWhole: boolean;
  readonly isLogged: boolean;
  readonly counting: CountingLoads;
  /** All loads that were ever undone, with the transactions in which their chunks were written. */
  readonly known: ReadonlyMap<number, readonly string[]>;
  /** The loads that turn: what they changed may go back. */
  readonly loads: readonly number[];
  /** Undos that ran after these began. */
  readonly undos: readonly number[];
  /** Loads that these undid or brought back: what is stored from before the undone loads may hold too much or too little of them. */
  readonly others: readonly number[];
  /** Files of earlier undos that hold the events of loads that turn, with the transactions that added these. */
  readonly eventFiles: readonly {
    readonly jobId: string;
    readonly ref: FileRef | null;
    readonly on: ReadonlySet<string>;
    readonly off: ReadonlySet<string>;
  }[];
}

interface KnownUndo extends UndoOfLoads {
  readonly jobId: string;
  readonly lane: number;
  readonly ref: FileRef | null;
  readonly removedEvents: boolean;
}

/** Reads an undo and all others of its environment. Returns `null` if the load is none. */
async function readUndos(db: Database, loadId: number) {
  const { rows } = await sql<
    UndoOfLoads & Pick<UndoSource, 'environmentId' | 'isLogged'> & { readonly undos: readonly KnownUndo[] }
  >`
    select
      u.environment_id as "environmentId",
      u.load_id as "loadId",
      to_json(u.undoes) as undoes,
      u.undo_properties as properties,
      ${areLogged(sql.ref('u.undoes'))} as "isLogged",
      (
        select coalesce(json_agg(json_build_object(
          'loadId', o.load_id, 'undoes', o.undoes, 'properties', o.undo_properties, 'jobId', o.job_id, 'lane', o.lane_position,
          'ref', o.file_ref, 'removedEvents', exists (
            select 1
            from load_kinds k
            where k.load_id = o.load_id and k.kind not in ('identify_user', 'identify_company', 'unknown') and k.rows_removed > 0
          )
        )), '[]')
        from loads o
        where o.environment_id = u.environment_id and o.undoes is not null and o.load_id <> u.load_id
          and o.status = 'completed' and not o.dry_run and ${areLogged(sql.ref('o.undoes'))}
      ) as undos
    from loads u
    where u.load_id = ${loadId} and u.undoes is not null`.execute(db);
  const [undo] = rows;
  return undo === undefined ? null : { ...undo, counting: new CountingLoads(undo, undo.undos) };
}

/** Returns `null` if the load is no undo. */
export async function readUndoSource(db: Database, loadId: number): Promise<UndoSource | null> {
  const undo = await readUndos(db, loadId);
  if (undo === null) return null;
  const { environmentId, isLogged, undos, counting } = undo;
  const { loads } = counting;
  const roots = new Set([undo, ...undos].flatMap(({ undoes }) => counting.rootsOf(undoes)));
  const { rows: known } = await sql<{ loadId: number; lane: number; positions: readonly string[] }>`
    select
      load_id as "loadId", case when attempts = 1 then lane_position else 0 end as lane,
      array(select p::text from load_chunks c cross join unnest(c.positions) p where c.load_id = loads.load_id) as positions
    from loads
    where load_id = any(${[...roots]})`.execute(db);
  const began = Math.min(...known.flatMap(({ loadId: id, lane }) => (loads.includes(id) ? [lane] : [])));
  const later = undos.filter(({ lane }) => lane > began);
  const positions = new Map(known.map((load) => [load.loadId, load.positions]));
  return {
    environmentId,
    isWhole: undo.properties === null,
    isLogged,
    counting,
    known: positions,
    loads,
    undos: later.map((one) => one.loadId),
    others: later.flatMap(({ undoes }) => counting.rootsOf(undoes)).filter((id) => !loads.includes(id)),
    eventFiles: undo.properties === null ? eventFilesOf(counting, undos, positions) : [],
  };
}

/** The newest undo that removed the events of a load has all of them in its file. */
function eventFilesOf(
  counting: CountingLoads,
  undos: readonly KnownUndo[],
  positions: UndoSource['known'],
): UndoSource['eventFiles'] {
  const newest = undos.filter((undo) => undo.removedEvents).sort((a, b) => b.lane - a.lane);
  const holders = new Map<number, KnownUndo>();
  for (const undo of newest) {
    for (const load of counting.rootsOf(undo.undoes)) if (!holders.has(load)) holders.set(load, undo);
  }
  const { on, off } = counting.turned;
  return newest.flatMap((undo) => {
    const added = (loads: readonly number[]) =>
      new Set(loads.flatMap((load) => (holders.get(load) === undo ? (positions.get(load) ?? []) : [])));
    const file = { jobId: undo.jobId, ref: undo.ref, on: added(on), off: added(off) };
    return file.on.size + file.off.size > 0 ? [file] : [];
  });
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

/**
 * Gives an undo the file that was written for it. One that it had is left to the sweep of received files.
 * Throws `TransientError` if the new one was swept already.
 */
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
