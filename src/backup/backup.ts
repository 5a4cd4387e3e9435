/**
 * Backups: the database, the stored files and the keys of one moment, in one archive (`archive.ts`), made while the service
 * runs. Start reading at `writeBackup`; `restore.ts` is the way back.
 *
 * The rows are those of one snapshot. Every stored file that work under way in it needs is in the archive, or the backup fails;
 * it fails too if the store has none of the files that the ledger names. A file of ended work may be removed while the backup is
 * made; after a restore that work looks as if the file had expired. An archive without its manifest is no backup.
 */
import { type FileHandle, link, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { uuidv7 } from 'uuidv7';
import { TransientError } from '../domain/errors.ts';
import { ABANDONED_BACKUP_MS, STORED_FILES_AT_A_TIME } from '../domain/limits.ts';
import { codeOf, isFileSystemFull, syncFolder } from '../files/disk.ts';
import { type FileStore, MissingFileError } from '../files/file-store.ts';
import { readPackage } from '../package-root.ts';
import { type DatabaseSource, readDatabase } from '../postgres/database-copy/read-database.ts';
import {
  findListed,
  listOthers,
  type StoredFile,
  storedFiles,
} from '../postgres/database-copy/stored-files.ts';
import { ArchiveWriter, archiveFormat } from './archive.ts';

export interface BackupSource {
  readonly databaseUrl: string;
  /** `null` leaves the files out; `filesAt` says where they are. */
  readonly files: FileStore | null;
  readonly filesAt: string;
}

export interface BackupSummary {
  /** The time of the snapshot, by the database's clock. */
  readonly at: string;
  readonly tables: number;
  readonly rows: number;
  readonly files: number;
  /** Uncompressed. */
  readonly bytes: number;
  /** Files that the ledger names and the store lacks, because they were removed during the backup or lost before. */
  readonly missing: number;
  /** The missing files that the ledger still names. */
  readonly lost: readonly string[];
  /** Tables and views of other schemas. */
  readonly leftOut: readonly string[];
}

/** Called now and then with the uncompressed bytes so far. What it throws ends the backup. */
type Show = (bytes: number, doing: string) => void;

/** Writes a backup into `to`, and ends it. After an error, discard what was written. */
export async function writeBackup(
  source: BackupSource,
  to: Writable,
  show: Show = () => undefined,
): Promise<BackupSummary> {
  const database = await readDatabase(source.databaseUrl);
  try {
    const { shape } = database;
    const archive = await ArchiveWriter.begin(to, {
      format: archiveFormat,
      sluice: readPackage().version,
      created_at: new Date().toISOString(),
      files: source.files === null ? source.filesAt : 'included',
      database: shape,
    });
    // Files first: the longer ago the snapshot is, the more of them have expired since.
    const stored =
      source.files === null
        ? { missing: 0, lost: [] }
        : await addFiles(archive, database, { ...source, files: source.files }, show);
    for (const table of shape.tables) {
      show(archive.bytes, table.name);
      await archive.add(
        { kind: 'tables', name: table.name },
        watched(database.copyOut(table), archive, table.name, show),
      );
    }
    const leftOut = await listOthers(database);
    const { tables, files } = await archive.end();
    return {
      at: shape.at,
      tables: tables.length,
      rows: tables.reduce((sum, { rows }) => sum + rows, 0),
      files: files.count,
      bytes: archive.bytes,
      leftOut,
      ...stored,
    };
  } finally {
    await database.close();
  }
}

async function* watched(
  chunks: AsyncIterable<Buffer>,
  archive: ArchiveWriter,
  doing: string,
  show: Show,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    yield chunk;
    show(archive.bytes, doing);
  }
}

type WithFiles = BackupSource & { readonly files: FileStore };

async function addFiles(
  archive: ArchiveWriter,
  database: DatabaseSource,
  source: WithFiles,
  show: Show,
): Promise<Pick<BackupSummary, 'missing' | 'lost'>> {
  let missing = 0;
  let found = 0;
  const lost: string[] = [];
  let gone: StoredFile[] = [];
  const judge = async (): Promise<void> => {
    missing += gone.length;
    if (gone.length > 0) lost.push(...(await stillListed(source.databaseUrl, gone)));
    gone = [];
  };
  for await (const file of storedFiles(database)) {
    const { ref } = file;
    const before = archive.bytes;
    try {
      const bytes = source.files.open(ref) as AsyncIterable<Buffer>;
      await archive.add({ kind: 'files', name: ref }, watched(bytes, archive, 'files', show));
      found++;
    } catch (error) {
      if (!(error instanceof MissingFileError) || archive.bytes !== before) throw error;
      gone.push(file);
      if (gone.length === STORED_FILES_AT_A_TIME) await judge();
    }
  }
  await judge();
  if (found === 0 && lost.length > 0) throw new TransientError(noFiles(source.filesAt, lost.length));
  return { missing, lost };
}

function noFiles(filesAt: string, count: number): string {
  const files = count === 1 ? 'The stored file' : `None of the ${count} stored files`;
  return `${files} that the database lists is ${count === 1 ? 'not ' : ''}in ${filesAt}, so nothing was backed up. Is that the folder of the service (DATA_DIR, STORAGE_URL)? In a container, is its volume mounted?`;
}

/**
 * Returns the missing files that the database still lists: they were lost. The others were removed during the backup, with
 * what they were kept for. If work under way in the snapshot needs one of those, the backup would hold work that cannot
 * continue.
 * @throws TransientError
 */
async function stillListed(databaseUrl: string, gone: readonly StoredFile[]): Promise<string[]> {
  const now = await readDatabase(databaseUrl);
  try {
    const listed = await findListed(
      now,
      gone.map(({ ref }) => ref),
    );
    if (gone.every(({ ref, isNeeded }) => !isNeeded || listed.get(ref) === true)) return [...listed.keys()];
  } finally {
    await now.close();
  }
  throw new TransientError(
    'A stored file was removed while the backup was made, and what needed it in the backup ended meanwhile. Make the backup again.',
  );
}

/** No one else uses such names, and each process has its own: in containers all processes have one pid. */
const partialPattern = /^\..+\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.partial$/;

/**
 * Writes a backup into a file, which appears when it is complete. A backup that fails leaves nothing behind, and removes what a killed
 * one left.
 * @throws TransientError if the disk is full, or a file of that name has appeared meanwhile.
 */
export async function writeBackupFile(
  source: BackupSource,
  path: string,
  show?: Show,
): Promise<BackupSummary & { readonly fileBytes: number }> {
  const folder = dirname(path);
  await removeAbandoned(folder);
  const partial = join(folder, `.${path.slice(folder.length).replace(/^[/\\]+/, '')}.${uuidv7()}.partial`);
  // It holds keys and data of users.
  const file = await open(partial, 'wx', 0o600);
  try {
    const summary = await writeBackup(source, writableOf(file), show);
    await file.sync();
    const { size } = await file.stat();
    await file.close();
    await giveName(partial, path);
    await syncFolder(folder);
    return { ...summary, fileBytes: size };
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(partial, { force: true });
    if (!isFileSystemFull(error)) throw error;
    throw new TransientError(
      `The disk of ${folder} is full; nothing of the backup was left there. Make room, or name a folder on another disk.`,
      { cause: error },
    );
  }
}

/** A backup replaces no other file, except where the file system knows no links. */
async function giveName(partial: string, path: string): Promise<void> {
  try {
    await link(partial, path);
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') return rename(partial, path);
    throw new TransientError(`${path} was made by somebody else meanwhile. Back up to another name.`, {
      cause,
    });
  }
  await rm(partial);
}

/** Returns a stream into the file that does not close it: it must be durable first. */
function writableOf(file: FileHandle): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      file.writeFile(chunk).then(() => done(), done);
    },
  });
}

async function removeAbandoned(folder: string): Promise<void> {
  const before = Date.now() - ABANDONED_BACKUP_MS;
  for (const name of await readdir(folder)) {
    if (!partialPattern.test(name)) continue;
    const path = join(folder, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
    if (mtimeMs < before) await rm(path, { force: true });
  }
}
