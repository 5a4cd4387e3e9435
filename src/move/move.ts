/**
 * From the embedded database to a PostgreSQL of one's own, with the files where that is wished. Begins in `moveAll`.
 *
 *   source (embedded, read-only for as long as it takes)          target
 *   ──────────────────────────────────────────────────────────    ─────────────────────────────────────────────
 *   ours alone: no service runs on it                             checked; nothing is written before that
 *                                                                 sluice_move: no service starts on it from here on
 *   COPY of each table, and its hash ───────────────────────────► a transaction for each: rows, hash, record
 *   files ──────────────────────────────────────────────────────► under the same names
 *   marked as moved: no service starts on it from here on
 *                                                                 one transaction: sequences, later migrations,
 *                                                                 sluice_move goes: the database is complete
 *
 * It promises: killed at any moment, the same command goes on; at no moment may a service start on both; the source is left
 * as it was, but for the mark. What ties a task to the old server (leases, workers, notifications of the queue) is taken off by
 * `finishTables`; the queue is filled from the ledger by whoever works next.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { connectForCopy, type DatabaseSource, readDatabase } from '../database-copy/read-database.ts';
import { finishTables } from '../database-copy/write-database.ts';
import type { Finding } from '../doctor/check.ts';
import { TransientError } from '../domain/errors.ts';
import { MOVE_LOCK_MS } from '../domain/limits.ts';
import { type EmbeddedPostgres, embeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { openFileStore } from '../files/storage.ts';
import { beginMove, endMove, isBeingMoved, readIdentity } from '../postgres/stores/moves.ts';
import { withoutSecrets } from '../setting.ts';
import { checkTarget } from './check-target.ts';
import { copyFiles, type MovedFiles } from './copy-files.ts';
import { type CopyProgress, copyTables, inTransaction, type MovedTable } from './copy-tables.ts';

export interface MoveWish {
  /** The folder of the embedded server. */
  readonly dataDir: string;
  readonly from: Config;
  /** As a service will be started: DATABASE_URL and the rest. */
  readonly to: Config & { readonly databaseUrl: string };
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface MoveProgress extends CopyProgress {
  onFile(moved: MovedFiles): void;
}

export interface Moved {
  readonly tables: readonly MovedTable[];
  /** Null: they stay where they are. */
  readonly files: MovedFiles | null;
}

/** Runs `work` on the embedded server, on which nobody else runs or may write meanwhile. @throws DataDirInUseError */
export async function onSource<T>(
  { dataDir, log }: Pick<MoveWish, 'dataDir' | 'log'>,
  work: (url: string) => Promise<T>,
): Promise<T> {
  // Whoever connects meanwhile can read, and nothing else.
  const settings = { default_transaction_read_only: 'on' };
  const server: EmbeddedPostgres = await embeddedPostgres.start({
    dataDir,
    log,
    settings,
    evenIfMoved: true,
  });
  try {
    return await work(server.url);
  } finally {
    await server.stop();
  }
}

/** What speaks for and against it. Writes nothing. */
export async function checkMove({ to }: Pick<MoveWish, 'to'>, sourceUrl: string): Promise<Finding[]> {
  const source = await connectForCopy(sourceUrl);
  try {
    return await checkTarget(to.databaseUrl, to, await readIdentity(source));
  } finally {
    await source.end();
  }
}

/** What there is to copy, as it lies on the disk. */
export async function measureTables(sourceUrl: string): Promise<{ tables: number; bytes: number }> {
  const source = await readDatabase(sourceUrl);
  try {
    const { rows } = await source.client.query<{ bytes: string }>(
      'select sum(pg_total_relation_size(to_regclass($1 || quote_ident(name)))) as bytes from unnest($2::text[]) name',
      ['sluice.', source.shape.tables.map(({ name }) => name)],
    );
    return { tables: source.shape.tables.length, bytes: Number(rows[0]?.bytes) };
  } finally {
    await source.close();
  }
}

/** What a move has made of the database: nothing that is there now, a part, or all of it. */
export async function readProgress(url: string): Promise<'nothing' | 'part' | 'all'> {
  const client = await connectForCopy(url);
  try {
    if (await isBeingMoved(client)) return 'part';
    const { rows } = await client.query<{ there: boolean }>(
      `select to_regnamespace('sluice') is not null as there`,
    );
    return rows[0]?.there === true ? 'all' : 'nothing';
  } finally {
    await client.end();
  }
}

/** The checks must have passed. @throws what `signal` was aborted with. */
export async function moveAll(wish: MoveWish, sourceUrl: string, progress: MoveProgress): Promise<Moved> {
  const { to, signal } = wish;
  const connections: { end(): Promise<void> }[] = [];
  try {
    const source = await readDatabase(sourceUrl);
    connections.push({ end: source.close });
    const witness = await connectForCopy(sourceUrl);
    const target = await connectForCopy(to.databaseUrl);
    connections.push(witness, target);
    await lockTarget(target, signal);
    await beginMove(target, await readIdentity(witness));
    const tables = await copyTables({ source, witness, target }, progress, signal);
    const files = await moveFiles(wish, progress);
    signal.throwIfAborted();
    await complete(target, source, wish);
    return { tables, files };
  } finally {
    // Not waited for: one that is in the middle of a COPY ends with its server, or with us.
    for (const connection of connections) void connection.end().catch(() => undefined);
  }
}

/** What remains where it was only marked as moved before it was killed, or the whole of it. */
async function complete(target: pg.Client, { shape }: DatabaseSource, wish: MoveWish): Promise<void> {
  await embeddedPostgres.markMoved(wish.dataDir, {
    movedAt: new Date().toISOString(),
    to: shownUrl(wish.to.databaseUrl),
    settings: newSettings(wish),
  });
  await inTransaction(target, async () => {
    await finishTables(target, shape);
    await endMove(target);
  });
  // What the planner knows of the tables comes with the rows only if somebody looks.
  await target.query('analyze');
}

/** Spells SLUM. */
const advisoryLock = 0x534c554d;
const lockPollMs = 200;

/** One move at a time: what a killed one had under way on the server ends when that notices. */
async function lockTarget(target: pg.Client, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + MOVE_LOCK_MS;
  for (;;) {
    const { rows } = await target.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [
      advisoryLock,
    ]);
    if (rows[0]?.locked === true) return;
    if (performance.now() > deadline) throw new TransientError('another move fills the database now');
    await delay(lockPollMs, undefined, { signal });
  }
}

/** Whether the files are to be somewhere else. */
export function movesFiles({ from, to }: Pick<MoveWish, 'from' | 'to'>): boolean {
  return storageOf(from) !== storageOf(to);
}

/** To start with from then on, without passwords; all others stay as they are. */
export function newSettings({ from, to }: MoveWish): Readonly<Record<string, string>> {
  const { databaseUrl, redisUrl } = to;
  return {
    DATABASE_URL: shownUrl(databaseUrl),
    ...(redisUrl === from.redisUrl || redisUrl === null ? {} : { REDIS_URL: shownUrl(redisUrl) }),
    ...(movesFiles({ from, to }) ? { STORAGE_URL: storageOf(to) } : {}),
  };
}

function storageOf({ storage }: Config): string {
  return storage.kind === 'folder' ? storage.directory : storage.url;
}

async function moveFiles(wish: MoveWish, progress: MoveProgress): Promise<MovedFiles | null> {
  const { from, to, signal } = wish;
  if (!movesFiles(wish) || from.storage.kind !== 'folder') return null;
  const source = openFileStore(from.storage, from.maxInflatedBytes);
  const target = openFileStore(to.storage, to.maxInflatedBytes);
  return copyFiles(from.storage.directory, source, target, progress.onFile, signal);
}

/** As it may be shown. */
export function shownUrl(url: string): string {
  return withoutSecrets({}, url);
}
