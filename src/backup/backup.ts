/**
 * Backups: the database, the stored files and the keys of one moment, in one archive (`archive.ts`), made while everything
 * runs. Start reading at `writeBackup`; `restore.ts` is the way back.
 *
 * It promises: rows are those of one snapshot. Every stored file that work under way in it needs is in the archive, or the
 * backup fails; it fails too if the store has none of the files that the ledger names. A file of work that had ended may be removed while the backup is made; when it is restored, that work is as
 * if the file had expired. An archive without its manifest is none.
 */
import { type FileHandle, link, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { uuidv7 } from 'uuidv7';
import { type DatabaseSource, readDatabase } from '../database-copy/read-database.ts';
import { TransientError } from '../domain/errors.ts';
import { ABANDONED_BACKUP_MS, MAX_SHOWN_COLUMNS, STORED_FILES_AT_A_TIME } from '../domain/limits.ts';
import { codeOf, isFileSystemFull, syncFolder } from '../files/disk.ts';
import { checkRef, type FileRef, type FileStore, MissingFileError } from '../files/file-store.ts';
import { readPackage } from '../package-root.ts';
import { isBeingMoved } from '../postgres/stores/moves.ts';
import { archiveFormat } from './archive.ts';
import { ArchiveWriter } from './write-archive.ts';

export interface BackupSource {
  readonly databaseUrl: string;
  /** Null: they are not to be in it, and `filesAt` says where they are. */
  readonly files: FileStore | null;
  readonly filesAt: string;
}

/** What a backup holds. */
export interface BackupSummary {
  /** The moment that it shows, by the database's clock. */
  readonly at: string;
  readonly tables: number;
  readonly rows: number;
  readonly files: number;
  /** Before they were compressed. */
  readonly bytes: number;
  /** Files that the ledger names and the store lacks: removed during the backup, or lost before. */
  readonly missing: number;
  /** Of these, files that the ledger still names. */
  readonly lost: readonly string[];
  /** Tables and views of other schemas, up to MAX_SHOWN_COLUMNS: they are somebody else's. */
  readonly leftOut: readonly string[];
}

/** Called now and then with the bytes so far, before they are compressed. What it throws ends the backup. */
type Show = (bytes: number, doing: string) => void;

/** Into `to`, which it ends. After an error what was written is to be thrown away. */
export async function writeBackup(
  source: BackupSource,
  to: Writable,
  show: Show = () => undefined,
): Promise<BackupSummary> {
  const database = await readDatabase(source.databaseUrl);
  try {
    const { shape } = database;
    if (await isBeingMoved(database.client))
      throw new TransientError(
        'A move to this database has begun and is not complete. Run the same `sluice move` again first.',
      );
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
    const leftOut = await readOthers(database);
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

async function readOthers({ client }: DatabaseSource): Promise<string[]> {
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

interface StoredFile {
  readonly ref: FileRef;
  /** Something under way cannot go on without it; or nothing else has what is in it. */
  readonly isNeeded: boolean;
}

/** Where the ledger names files, and which of them are needed. Tables of later versions may not be there yet. */
const references: Readonly<Record<string, string>> = {
  loads: `select file_ref, status in ('queued', 'processing') from sluice.loads where file_ref is not null`,
  upload_parts: `select file_ref, false from sluice.upload_parts join sluice.uploads using (upload_id) where expires_at > now()`,
  event_archives: `select file_ref, true from sluice.event_archives where state = 'stored'`,
  export_files:
    'select file_ref, false from sluice.export_files join sluice.exports using (export_id) where files_expired_at is null',
};

function referencesIn(tables: readonly { readonly name: string }[]): string {
  const there = new Set(tables.map(({ name }) => name));
  const selects = Object.entries(references).flatMap(([table, select]) => (there.has(table) ? [select] : []));
  return `select file_ref as ref, bool_or(is_needed) as "isNeeded"
    from (${selects.join(' union all ')}) r (file_ref, is_needed)
    group by file_ref`;
}

/** Those that are needed first: they are the ones that must not go meanwhile. */
async function* storedFiles({ client, shape }: DatabaseSource): AsyncGenerator<StoredFile> {
  await client.query(
    `declare stored_files no scroll cursor for ${referencesIn(shape.tables)} order by "isNeeded" desc, ref`,
  );
  for (;;) {
    const { rows } = await client.query<StoredFile>(`fetch ${STORED_FILES_AT_A_TIME} from stored_files`);
    for (const { ref, isNeeded } of rows) yield { ref: checkRef(ref), isNeeded };
    if (rows.length < STORED_FILES_AT_A_TIME) return;
  }
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
    const { rows } = await now.client.query<StoredFile>(
      `select ref, "isNeeded" from (${referencesIn(now.shape.tables)}) r where ref = any ($1)`,
      [gone.map(({ ref }) => ref)],
    );
    const listed = new Map(rows.map(({ ref, isNeeded }) => [ref, isNeeded]));
    if (gone.every(({ ref, isNeeded }) => !isNeeded || listed.get(ref) === true)) return [...listed.keys()];
  } finally {
    await now.close();
  }
  throw new TransientError(
    'A stored file was removed while the backup was made, and what needed it in the backup ended meanwhile. Make the backup again.',
  );
}

/** No name that others give. Of its own for each process: in containers all have one pid. */
const partialPattern = /^\..+\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.partial$/;

/**
 * A backup in a file, which appears when it is complete. Nothing is left of one that fails; what a killed one left goes with a later one.
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
  // Keys and data of users are in it.
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
      {
        cause: error,
      },
    );
  }
}

/** A backup never takes the place of another file, but where the file system knows no links. */
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

/** Leaves the file open: it is to be durable before it is closed. */
function writableOf(file: FileHandle): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      // All of it, however much a call takes.
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
