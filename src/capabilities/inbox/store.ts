import { type InferResult, sql } from 'kysely';
import pg from 'pg';
import { ConflictError } from '../../base/errors.ts';
import type { RefusalReason } from '../../domain/job.ts';
import { endedStatuses, type FileOptions } from '../../domain/load.ts';
import { camel, daysAgo, hex } from '../../postgres/columns.ts';
import type { ConnectionMonitor } from '../../postgres/connection-monitor.ts';
import { changedBy, countOf, type Database, updateWhere } from '../../postgres/database.ts';
import { isUniqueViolation } from '../../postgres/sqlstate.ts';
import type { InboxFile, InboxOutcome, SeenFile } from './files.ts';

/*
 * States of an inbox file: `loading` or `refused`, then `concluded`. Inbox files are not tasks,
 * because they must be processed in order. A session advisory lock ensures that only one process
 * watches an inbox. If two processes watched the same inbox, `seenAt` would prevent them from
 * taking the same file.
 */

export interface NewInboxFile extends SeenFile {
  readonly fileId: string;
  readonly inboxId: string;
  readonly environmentId: number;
  readonly options: FileOptions;
  /** Time when the scan that found the file began, by the database's clock. */
  readonly seenAt: string;
}

type Taken =
  | {
      readonly state: 'loading';
      readonly jobId: string;
      readonly isDuplicate: boolean;
      readonly sha256: string;
    }
  | { readonly state: 'refused'; readonly sha256: string | null; readonly reasons: readonly RefusalReason[] };

/**
 * Stores a file that was taken or refused. Each side of the `or` repeats the condition of a partial
 * index, so PostgreSQL need not scan all rows.
 * @throws ConflictError if the file was taken after `seenAt`
 */
export async function insertInboxFile(db: Database, file: NewInboxFile, result: Taken): Promise<void> {
  const defaults = { jobId: null, isDuplicate: false, reasons: [] };
  const { state, sha256, jobId, isDuplicate, reasons } = { ...defaults, ...result };
  const { rows } = await sql`
    insert into inbox_files (file_id, inbox_id, environment_id, folder, name, inode, size, modified_ns, options, state,
      sha256, job_id, is_duplicate, reasons)
    select ${file.fileId}::uuid, f.*, ${JSON.stringify(file.options)}::jsonb, ${state}, decode(${sha256}, 'hex'),
      ${jobId}::uuid, ${isDuplicate}::boolean, ${JSON.stringify(reasons)}::jsonb
    from (
      values (${file.inboxId}::uuid, ${file.environmentId}::integer, ${file.folder}, ${file.name},
        ${String(file.inode)}::numeric, ${String(file.size)}::bigint, ${String(file.modifiedNs)}::numeric)
    ) as f (inbox_id, environment_id, folder, name, inode, size, modified_ns)
    where not exists (
      select 1 from inbox_files as known
      where (known.inbox_id, known.environment_id, known.folder, known.name, known.inode, known.size, known.modified_ns)
        = (f.inbox_id, f.environment_id, f.folder, f.name, f.inode, f.size, f.modified_ns)
        and (
          known.state <> 'concluded'
          or known.state = 'concluded' and known.concluded_at > ${file.seenAt}::timestamptz
        )
    )
    on conflict do nothing
    returning file_id`.execute(db);
  if (rows.length === 0) throw new ConflictError('another process has taken the file');
}

export function rowKey({ folder, name, inode, size, modifiedNs }: SeenFile): string {
  return [folder, name, inode, size, modifiedNs].join('/');
}

/** `at` is the current time of the database. */
export async function readOpenInboxFiles(
  db: Database,
  inboxId: string,
  environmentId: number,
): Promise<{ readonly at: string; readonly keys: ReadonlySet<string> }> {
  const { rows } = await sql<{ at: string; keys: string[] }>`
    select clock_timestamp()::text as at, array(
      select concat_ws('/', folder, name, inode, size, modified_ns) from inbox_files
      where inbox_id = ${inboxId} and environment_id = ${environmentId} and state <> 'concluded'
    ) as keys`.execute(db);
  return { at: rows[0]?.at ?? '', keys: new Set(rows[0]?.keys) };
}

/**
 * Reserves a destination for a file. Returns the destination that the file already had, if any, or
 * the new one. `null` if another file has reserved `placedAs`.
 */
export async function reservePlace(
  db: Database,
  fileId: string,
  outcome: InboxOutcome,
  placedAs: string,
): Promise<{ readonly outcome: InboxOutcome; readonly placedAs: string } | null> {
  try {
    const row = await updateWhere(db, 'inbox_files', { fileId })
      .set({ outcome: sql`coalesce(outcome, ${outcome})`, placed_as: sql`coalesce(placed_as, ${placedAs})` })
      .returning(['outcome', 'placed_as as placedAs'])
      .executeTakeFirst();
    if (row?.outcome == null || row.placedAs === null) {
      throw new ConflictError('the file is not in the ledger any more');
    }
    return { outcome: row.outcome, placedAs: row.placedAs };
  } catch (error) {
    if (isUniqueViolation(error)) return null;
    throw error;
  }
}

export async function markConcluded(
  db: Database,
  fileId: string,
  reasons: readonly RefusalReason[],
): Promise<void> {
  await updateWhere(db, 'inbox_files', { fileId })
    .set({ state: 'concluded', concluded_at: sql`now()`, reasons: JSON.stringify(reasons) })
    .where('state', 'in', ['loading', 'refused'])
    .execute();
}

/** Takes one file from each environment in turn, so that no environment delays another. */
export async function filesToConclude(
  db: Database,
  inboxId: string,
  except: readonly string[],
  limit: number,
): Promise<InboxFile[]> {
  const rows = await selectInboxFiles(db)
    .select(sql<number>`row_number() over (partition by f.environment_id order by f.arrival)`.as('turn'))
    .leftJoin('loads as l', (join) =>
      join.onRef('l.job_id', '=', 'f.job_id').onRef('l.environment_id', '=', 'f.environment_id'),
    )
    .where('f.inbox_id', '=', inboxId)
    .where(sql<boolean>`f.file_id <> all (${[...except]}::uuid[])`)
    // A load whose record was pruned has ended. If a destination is reserved, the move has begun
    // and must be completed.
    .where(
      sql<boolean>`(f.state = 'refused' or (
        f.state = 'loading'
          and (l.job_id is null or l.status = any (${[...endedStatuses]}::text[]) or f.placed_as is not null)
      ))`,
    )
    .orderBy('turn')
    .orderBy('f.arrival')
    .limit(limit)
    .execute();
  return rows.map(toInboxFile);
}

export function forgetExpiredInboxFiles(db: Database, days: number, limit: number): Promise<number> {
  return changedBy(db)`
    delete from inbox_files
    where file_id in (
      select f.file_id
      from inbox_files f
      left join loads l using (job_id)
      where f.state = 'concluded' and f.concluded_at < ${daysAgo(days)} and l.file_ref is null
      limit ${limit}
    )`;
}

export function selectInboxFiles(db: Database) {
  return db
    .selectFrom('inbox_files as f')
    .innerJoin('environments as e', 'e.environment_id', 'f.environment_id')
    .select(
      camel('f.file_id', 'f.environment_id', 'f.folder', 'f.name', 'f.inode', 'f.size', 'f.modified_ns'),
    )
    .select(camel('f.options', 'f.state', 'f.taken_at', 'f.job_id', 'f.is_duplicate'))
    .select(camel('f.reasons', 'f.outcome', 'f.placed_as'))
    .select(['e.name as environment', hex('f.sha256', 'sha256')]);
}

type FileRow = InferResult<ReturnType<typeof selectInboxFiles>>[number];

export function toInboxFile({ inode, size, modifiedNs, ...file }: FileRow): InboxFile {
  return { ...file, inode: BigInt(inode), size: BigInt(size), modifiedNs: BigInt(modifiedNs) };
}

/** First key of the advisory lock. Spells INBX. */
const inboxLock = 0x494e4258;
const connectionTimeoutMillis = 10_000;

interface LockServer {
  readonly url: string;
  readonly monitor: ConnectionMonitor;
}

/**
 * A lock that a process holds while it watches an inbox. Data is safe even without the lock,
 * because every write also checks the ledger.
 */
export class InboxLock {
  readonly #server: LockServer;
  readonly #inboxId: string;
  readonly #onLost: () => void;
  #client: pg.Client | null = null;
  #isLocked = false;

  constructor(server: LockServer, inboxId: string, onLost: () => void) {
    this.#server = server;
    this.#inboxId = inboxId;
    this.#onLost = onLost;
  }

  async hold(): Promise<boolean> {
    const client = this.#client ?? (await this.#connect());
    try {
      if (this.#isLocked) await client.query('select');
      else this.#isLocked = await this.#take(client);
      return this.#isLocked;
    } catch (error) {
      this.#lose(client);
      throw error;
    }
  }

  async release(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    this.#isLocked = false;
    await client?.end().catch(() => undefined);
  }

  async #take(client: pg.Client): Promise<boolean> {
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_lock($1, hashtext($2)) as taken',
      [inboxLock, this.#inboxId],
    );
    return rows[0]?.taken === true;
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#server.url,
      application_name: 'sluice inbox',
      connectionTimeoutMillis,
      keepAlive: true,
    });
    client.on('error', () => this.#lose(client));
    client.on('end', () => this.#lose(client));
    try {
      await client.connect();
      await this.#server.monitor.watch(client);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    this.#client = client;
    return client;
  }

  #lose(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = null;
    const wasLocked = this.#isLocked;
    this.#isLocked = false;
    client.end().catch(() => undefined);
    if (wasLocked) this.#onLost();
  }
}

export function countOpenInboxFiles(db: Database, inboxId: string, environmentId: number): Promise<number> {
  return countOf(db)`
    select count(*) from inbox_files
    where inbox_id = ${inboxId} and environment_id = ${environmentId} and state <> 'concluded'`;
}

export async function recentInboxFiles(db: Database, inboxId: string, environmentId: number, limit: number) {
  const rows = await selectInboxFiles(db)
    .leftJoin('loads as l', (join) =>
      join
        .onRef('l.job_id', '=', 'f.job_id')
        .on('f.is_duplicate', '=', false)
        .on('l.status', '=', 'completed'),
    )
    .select(['f.concluded_at as concludedAt', 'l.rows_rejected as rejected'])
    .where('f.inbox_id', '=', inboxId)
    .where('f.environment_id', '=', environmentId)
    .where('f.state', '=', 'concluded')
    .orderBy('f.concluded_at', 'desc')
    .limit(limit)
    .execute();
  return rows.map((file) => ({
    fileId: file.fileId,
    size: Number(file.size),
    name: file.folder === '' ? file.name : `${file.folder}/${file.name}`,
    outcome: file.outcome ?? ('failed' as const),
    path: `${file.outcome}/${file.placedAs}`,
    jobId: file.jobId,
    isDuplicate: file.isDuplicate,
    rejected: file.rejected ?? 0,
    reasons: file.reasons,
    concludedAt: file.concludedAt ?? file.takenAt,
  }));
}

export async function openInboxFilesOf(
  db: Database,
  inboxId: string,
  environmentId: number,
  limit: number,
): Promise<InboxFile[]> {
  const rows = await selectInboxFiles(db)
    .where((eb) => eb.and({ 'f.inbox_id': inboxId, 'f.environment_id': environmentId }))
    .where('f.state', '<>', 'concluded')
    .orderBy('f.arrival')
    .limit(limit)
    .execute();
  return rows.map(toInboxFile);
}

export async function findFailedInboxFile(
  db: Database,
  inboxId: string,
  environmentId: number,
  fileId: string,
): Promise<InboxFile | null> {
  const row = await selectInboxFiles(db)
    .where((eb) =>
      eb.and({
        'f.inbox_id': inboxId,
        'f.environment_id': environmentId,
        'f.file_id': fileId,
        'f.state': 'concluded',
        'f.outcome': 'failed',
      }),
    )
    .executeTakeFirst();
  return row === undefined ? null : toInboxFile(row);
}
