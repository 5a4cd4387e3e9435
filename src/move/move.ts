/**
 * Moves the embedded database to a PostgreSQL of one's own, and the files with it if that is wished. Start reading at `moveAll`.
 *
 * The embedded server runs for the move alone, read-only. Files are copied first, under their names; files that are there already
 * are skipped. Then the database is copied in one transaction of the target (`copyDatabase`). Its last step, before the commit,
 * marks the source as moved.
 *
 * It promises: a move that is killed leaves a target without a database, and the same command begins it again; at no moment may a
 * service start on both sides; the source keeps its data.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Logger } from 'pino';
import { storeFile } from '../backup/restore.ts';
import type { Config } from '../config.ts';
import type { Finding } from '../doctor/check.ts';
import { Fault } from '../domain/errors.ts';
import { MOVE_FILES_AT_A_TIME } from '../domain/limits.ts';
import { embeddedPostgres, type MovedMark } from '../embedded-postgres/embedded-postgres.ts';
import { codeOf } from '../files/disk.ts';
import { type FileRef, type FileStore, isRef } from '../files/file-store.ts';
import { openFileStore } from '../files/storage.ts';
import { type CopiedTable, connectForCopy, readDatabase } from '../postgres/database-copy/read-database.ts';
import { type CopyResult, copyDatabase } from '../postgres/database-copy/write-database.ts';
import { withoutSecrets } from '../setting.ts';
import { checkTarget, readIdentity } from './check-target.ts';

export interface MoveWish {
  /** The folder of the embedded server. */
  readonly dataDir: string;
  readonly from: Config;
  /** The configuration that a service will start with on the other side. */
  readonly to: Config & { readonly databaseUrl: string };
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface MoveProgress {
  onRows(table: CopiedTable, rows: number): void;
  onFile(moved: MovedFiles): void;
}

export interface MovedFiles {
  readonly files: number;
  readonly bytes: number;
  /** Files that were there already. */
  readonly earlier: number;
}

export interface Moved {
  readonly tables: readonly CopyResult[];
  /** `null`: they stay where they are. */
  readonly files: MovedFiles | null;
}

/** Runs `work` on the embedded server, which nobody else can write to meanwhile. @throws DataDirInUseError */
export async function onSource<T>(
  { dataDir, log }: Pick<MoveWish, 'dataDir' | 'log'>,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const settings = { default_transaction_read_only: 'on' };
  const server = await embeddedPostgres.start({ dataDir, log, settings, evenIfMoved: true });
  try {
    return await work(server.url);
  } finally {
    await server.stop();
  }
}

/** Finds what speaks for and against a move. Writes nothing. */
export async function checkMove({ to }: Pick<MoveWish, 'to'>, sourceUrl: string): Promise<Finding[]> {
  const source = await connectForCopy(sourceUrl);
  try {
    return await checkTarget(to.databaseUrl, to, await readIdentity(source));
  } finally {
    await source.end();
  }
}

/** Measures what there is to copy, as it lies on the disk. */
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

/** Moves everything. The checks must have passed. @throws what `signal` was aborted with. */
export async function moveAll(wish: MoveWish, sourceUrl: string, progress: MoveProgress): Promise<Moved> {
  const { dataDir, to, signal } = wish;
  const mark = {
    movedAt: new Date().toISOString(),
    to: shownUrl(to.databaseUrl),
    settings: newSettings(wish),
  };
  const setMark = (isComplete: boolean) =>
    embeddedPostgres.markMoved(dataDir, { ...mark, isComplete } satisfies MovedMark);
  const connections: { end(): Promise<void> }[] = [];
  try {
    const source = await readDatabase(sourceUrl);
    connections.push({ end: source.close });
    const files = await moveFiles(wish, progress);
    const target = await connectForCopy(to.databaseUrl);
    connections.push(target);
    signal.throwIfAborted();
    const beforeCommit = () => setMark(false);
    const tables = await copyDatabase(source, target, { show: progress.onRows, beforeCommit, signal });
    await setMark(true);
    return { tables, files };
  } finally {
    // Not waited for: one that is in the middle of a COPY ends with its server, or with this process.
    for (const connection of connections) void connection.end().catch(() => undefined);
  }
}

/** Tells whether the files are to be somewhere else. */
export function movesFiles({ from, to }: Pick<MoveWish, 'from' | 'to'>): boolean {
  return storageOf(from) !== storageOf(to);
}

/** Returns the settings that change, without passwords. */
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

/** Returns the URL without its password. */
export function shownUrl(url: string): string {
  return withoutSecrets({}, url);
}

async function moveFiles(wish: MoveWish, progress: MoveProgress): Promise<MovedFiles | null> {
  const { from, to, signal } = wish;
  if (!movesFiles(wish) || from.storage.kind !== 'folder') return null;
  const source = openFileStore(from.storage, from.maxInflatedBytes);
  const target = openFileStore(to.storage, to.maxInflatedBytes);
  return copyFiles(from.storage.directory, source, target, progress.onFile, signal);
}

/**
 * Copies the files that the target does not have in the same length; each appears there whole or not at all. Files that were never
 * completed are left behind.
 */
export async function copyFiles(
  folder: string,
  from: FileStore,
  to: FileStore,
  onFile: (moved: MovedFiles) => void,
  signal: AbortSignal,
): Promise<MovedFiles> {
  const moved = { files: 0, bytes: 0, earlier: 0 };
  const limit = pLimit(MOVE_FILES_AT_A_TIME);
  const failure = new AbortController();
  const stop = AbortSignal.any([signal, failure.signal]);
  const move = async (ref: FileRef): Promise<void> => {
    stop.throwIfAborted();
    const bytes = (await stat(join(folder, ref))).size;
    if ((await to.size(ref)) === bytes) moved.earlier++;
    else await copyFile(from, to, ref, bytes, stop);
    moved.files++;
    moved.bytes += bytes;
    onFile(moved);
  };
  for (const refs of await listRefs(folder)) {
    const copies = refs.map((ref) => limit(() => move(ref)));
    try {
      await Promise.all(copies);
    } catch (error) {
      // The others end before the caller hears of it.
      failure.abort(error);
      await Promise.allSettled(copies);
      throw error;
    }
  }
  return moved;
}

async function copyFile(
  from: FileStore,
  to: FileStore,
  ref: FileRef,
  bytes: number,
  signal: AbortSignal,
): Promise<void> {
  const chunks = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of from.open(ref) as AsyncIterable<Buffer>) {
      signal.throwIfAborted();
      yield chunk;
    }
  };
  await storeFile(to, ref, chunks());
  const there = await to.size(ref);
  if (there !== bytes) throw new Fault(`the file ${ref} has ${there} bytes in the target, not ${bytes}`);
}

/** Measures the files that there are to copy. */
export async function measureFiles(folder: string): Promise<Omit<MovedFiles, 'earlier'>> {
  let [files, bytes] = [0, 0];
  for (const refs of await listRefs(folder)) {
    for (const ref of refs) {
      files++;
      bytes += (await stat(join(folder, ref))).size;
    }
  }
  return { files, bytes };
}

/** Lists the files of each folder at the top: days, and kinds of files that go together. */
async function listRefs(folder: string): Promise<readonly FileRef[][]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  const listed: FileRef[][] = [];
  for (const name of names.sort()) {
    const entries = await readdir(join(folder, name), { recursive: true }).catch((error: unknown) => {
      if (codeOf(error) === 'ENOTDIR') return [];
      throw error;
    });
    const refs = entries.map((entry) => `${name}/${entry.replaceAll('\\', '/')}`).filter(isRef);
    if (refs.length > 0) listed.push(refs);
  }
  return listed;
}
