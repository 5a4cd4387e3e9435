/* The inbox as a whole: its lock, and its files as they are shown. */
import pg from 'pg';
import type { InboxFile } from '../../domain/inbox.ts';
import type { ConnectionMonitor } from '../connection-monitor.ts';
import type { Database } from '../database.ts';
import { selectInboxFiles, toInboxFile } from './inbox-files.ts';

/** Spells INBX: the class half of a two-key advisory lock. */
const inboxLock = 0x494e4258;
const connectionTimeoutMillis = 10_000;

interface LockServer {
  readonly url: string;
  readonly monitor: ConnectionMonitor;
}

/**
 * A session lock on a connection of its own, so that one process at a time looks after an inbox. The ledger's fences keep what it
 * guards safe; the lock only saves double work.
 */
export class InboxLock {
  readonly #server: LockServer;
  readonly #inboxId: string;
  readonly #onLost: () => void;
  #client: pg.Client | null = null;
  #held = false;

  constructor(server: LockServer, inboxId: string, onLost: () => void) {
    this.#server = server;
    this.#inboxId = inboxId;
    this.#onLost = onLost;
  }

  /** Takes the lock if it is free, and tells whether this process has it. Throws if the database is away. */
  async hold(): Promise<boolean> {
    const client = this.#client ?? (await this.#connect());
    try {
      if (this.#held) await client.query('select');
      else this.#held = await this.#take(client);
      return this.#held;
    } catch (error) {
      this.#lose(client);
      throw error;
    }
  }

  async release(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    this.#held = false;
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
    const held = this.#held;
    this.#held = false;
    client.end().catch(() => undefined);
    if (held) this.#onLost();
  }
}

/** Counts, by environment, the files that are taken and not concluded. */
export async function countOpenInboxFiles(db: Database, inboxId: string): Promise<Map<number, number>> {
  const rows = await db
    .selectFrom('inbox_files')
    .select((eb) => ['environment_id', eb.fn.countAll<number>().as('count')])
    .where('inbox_id', '=', inboxId)
    .where('state', '<>', 'concluded')
    .groupBy('environment_id')
    .execute();
  return new Map(rows.map(({ environment_id, count }) => [environment_id, count]));
}

export type RecentInboxFile = Awaited<ReturnType<typeof recentInboxFiles>>[number];

export async function recentInboxFiles(
  db: Database,
  inboxId: string,
  environmentIds: readonly number[],
  limit: number,
) {
  if (environmentIds.length === 0) return [];
  const rows = await selectInboxFiles(db)
    .leftJoin('loads as l', (join) =>
      join
        .onRef('l.job_id', '=', 'f.job_id')
        .on('f.is_duplicate', '=', false)
        .on('l.status', '=', 'completed'),
    )
    .select(['f.concluded_at as concludedAt', 'l.rows_rejected as rejected'])
    .where('f.inbox_id', '=', inboxId)
    .where('f.environment_id', 'in', environmentIds)
    .where('f.state', '=', 'concluded')
    .orderBy('f.concluded_at', 'desc')
    .limit(limit)
    .execute();
  return rows.map((file) => ({
    fileId: file.fileId,
    size: Number(file.size),
    environment: file.environment,
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
