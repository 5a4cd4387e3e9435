/*
 * A backup is a tar, compressed with gzip, with these entries in this order.
 *
 *     backup.json              what it is, and the shape of the database
 *     files/<name>/000001 …    stored files
 *     tables/<name>/000001 …   rows as COPY writes them in its text format
 *     manifest.json            how many bytes and rows there are, and their SHA-256
 *
 * A file or table is cut into parts of up to BACKUP_PART_BYTES, because tar wants sizes first. An archive is written and read
 * in one pass, with bounded memory. docs/decisions/backup.md has the reasons.
 */
import { createHash, type Hash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';
import { DamagedFile } from '../domain/errors.ts';
import { BACKUP_PART_BYTES, READ_BYTES } from '../domain/limits.ts';
import { DatabaseShape } from '../postgres/database-copy/read-database.ts';
import { readTar, type TarEntry, tarEnd, tarEntry } from './tar.ts';

/** The version of the format; raised when earlier versions of sluice would misread an archive. */
export const archiveFormat = 1;

const text = Type.String();
const whole = Type.Integer({ minimum: 0 });

export const About = Type.Object({
  format: whole,
  sluice: text,
  created_at: text,
  /** `included`, or where the stored files are. */
  files: Type.Union([Type.Literal('included'), text]),
  database: DatabaseShape,
});
export type About = Static<typeof About>;

const Table = Type.Object({ name: text, rows: whole, bytes: whole, sha256: text });
const Manifest = Type.Object({
  tables: Type.Array(Table),
  files: Type.Object({ count: whole, bytes: whole, sha256: text }),
});
export type Manifest = Static<typeof Manifest>;

/** A stored file, or the rows of a table. */
export interface Item {
  readonly kind: 'files' | 'tables';
  readonly name: string;
}

interface Content {
  readonly bytes: number;
  /** Line ends; in a table these are the rows. */
  readonly lines: number;
  readonly sha256: string;
}

/** Adds up the content of all items. */
class Contents {
  readonly #tables: Static<typeof Table>[] = [];
  readonly #files = { count: 0, bytes: 0, hash: createHash('sha256') };

  add({ kind, name }: Item, { bytes, lines, sha256 }: Content): void {
    if (kind === 'tables') this.#tables.push({ name, rows: lines, bytes, sha256 });
    else {
      this.#files.count++;
      this.#files.bytes += bytes;
      this.#files.hash.update(`${name} ${sha256}\n`);
    }
  }

  manifest(): Manifest {
    const { count, bytes, hash } = this.#files;
    return { tables: this.#tables, files: { count, bytes, sha256: hash.copy().digest('hex') } };
  }
}

class Meter {
  readonly #hash: Hash = createHash('sha256');
  #bytes = 0;
  #lines = 0;

  add(chunk: Buffer): void {
    this.#hash.update(chunk);
    this.#bytes += chunk.length;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) this.#lines++;
  }

  content(): Content {
    return { bytes: this.#bytes, lines: this.#lines, sha256: this.#hash.digest('hex') };
  }
}

function partName({ kind, name }: Item, part: number): string {
  return `${kind}/${name}/${String(part).padStart(6, '0')}`;
}

/** Writes an archive into a stream, and ends it. After an error, discard the stream. */
export class ArchiveWriter {
  readonly #gzip = createGzip({ level: 1 });
  readonly #contents = new Contents();
  readonly #seconds: number;
  readonly #sent: Promise<void>;
  #bytes = 0;

  constructor(to: Writable, about: About) {
    this.#seconds = Math.floor(new Date(about.created_at).getTime() / 1000);
    this.#gzip.pipe(to);
    to.on('error', (error) => this.#gzip.destroy(error));
    // An error between two writes is reported by the next one, or by the end.
    this.#gzip.on('error', () => undefined);
    this.#sent = finished(to);
    // The writer hears of it first.
    this.#sent.catch(() => undefined);
  }

  static async begin(to: Writable, about: About): Promise<ArchiveWriter> {
    const writer = new ArchiveWriter(to, about);
    await writer.#put({ name: 'backup.json', content: json(about) });
    return writer;
  }

  /** Uncompressed bytes so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds an item: files before tables, each once. */
  async add(item: Item, chunks: AsyncIterable<Buffer>): Promise<Content> {
    const meter = new Meter();
    let part: Buffer[] = [];
    let [partBytes, parts] = [0, 0];
    const flush = async (): Promise<void> => {
      parts++;
      await this.#put({ name: partName(item, parts), content: Buffer.concat(part) });
      [part, partBytes] = [[], 0];
    };
    for await (const chunk of chunks) {
      meter.add(chunk);
      for (let rest = chunk; rest.length > 0; ) {
        const taken = rest.subarray(0, BACKUP_PART_BYTES - partBytes);
        part.push(taken);
        partBytes += taken.length;
        rest = rest.subarray(taken.length);
        if (partBytes === BACKUP_PART_BYTES) await flush();
      }
    }
    if (partBytes > 0 || parts === 0) await flush();
    const content = meter.content();
    this.#contents.add(item, content);
    return content;
  }

  async end(): Promise<Manifest> {
    const manifest = this.#contents.manifest();
    await this.#put({ name: 'manifest.json', content: json(manifest) });
    this.#gzip.end(tarEnd);
    await this.#sent;
    return manifest;
  }

  async #put(entry: TarEntry): Promise<void> {
    for (const bytes of tarEntry(entry, this.#seconds)) {
      this.#bytes += bytes.length;
      if (this.#gzip.errored !== null) throw this.#gzip.errored;
      if (!this.#gzip.write(bytes)) await once(this.#gzip, 'drain');
    }
  }
}

function json(value: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 1)}\n`);
}

/** Receives what a reader finds. `item` must read the bytes to their end before it returns. */
export interface ArchiveVisitor {
  about?(about: About): Promise<void> | void;
  item?(item: Item, bytes: AsyncIterable<Buffer>): Promise<void>;
  /** Called with the compressed bytes read so far, and the size of the file. */
  progress?(bytes: number, of: number): void;
}

/**
 * Reads an archive to its end. When it returns, everything that the visitor received was as it was written.
 * @throws DamagedFile
 */
export async function readArchive(
  path: string,
  visitor: ArchiveVisitor,
): Promise<{ about: About; manifest: Manifest }> {
  const tar = readTar(readGzip(path, visitor));
  try {
    return await readEntries(new Entries(tar), visitor);
  } finally {
    // A visitor may fail in the middle: the file is closed all the same.
    await tar.return(undefined);
  }
}

async function readEntries(
  entries: Entries,
  visitor: ArchiveVisitor,
): Promise<{ about: About; manifest: Manifest }> {
  const about = parse(About, await entries.take('backup.json'));
  if (about.format > archiveFormat)
    throw new DamagedFile(
      `it is of a later format (${about.format}): restore it with sluice ${about.sluice} or newer`,
    );
  await visitor.about?.(about);
  const contents = new Contents();
  for (let entry = await entries.next(); entry.name !== 'manifest.json'; entry = await entries.next()) {
    const item = readItem(entry.name);
    const meter = new Meter();
    const parts = entries.parts(item, entry.content, meter);
    await visitor.item?.(item, parts);
    for await (const _ of parts);
    contents.add(item, meter.content());
    entries.assertWhole();
  }
  const manifest = parse(Manifest, entries.current);
  await entries.assertEnd();
  compare(manifest, contents.manifest());
  return { about, manifest };
}

const itemPattern = /^(files|tables)\/([^\0]{1,200})\/000001$/;

function readItem(name: string): Item {
  const [, kind, item] = itemPattern.exec(name) ?? [];
  if (item === undefined) throw new DamagedFile(`it has an entry ${JSON.stringify(name)} that no backup has`);
  return { kind: kind as Item['kind'], name: item };
}

/** Looks one entry ahead: the parts of an item end where another begins. */
class Entries {
  readonly #tar: AsyncGenerator<TarEntry>;
  #ahead: TarEntry | null = null;
  #open = false;
  current: Buffer = Buffer.alloc(0);

  constructor(tar: AsyncGenerator<TarEntry>) {
    this.#tar = tar;
  }

  async next(): Promise<TarEntry> {
    const entry = this.#ahead ?? (await this.#read());
    this.#ahead = null;
    if (entry === null) throw new DamagedFile('it has no manifest');
    this.current = entry.content;
    return entry;
  }

  async take(name: string): Promise<Buffer> {
    const entry = await this.next();
    if (entry.name !== name) throw new DamagedFile('it is no backup of sluice');
    return entry.content;
  }

  async *parts(item: Item, first: Buffer, meter: Meter): AsyncGenerator<Buffer> {
    this.#open = true;
    let content = first;
    for (let part = 2; ; part++) {
      meter.add(content);
      if (content.length > 0) yield content;
      this.#ahead = await this.#read();
      if (this.#ahead === null || this.#ahead.name !== partName(item, part)) break;
      content = this.#ahead.content;
    }
    this.#open = false;
  }

  assertWhole(): void {
    if (this.#open) throw new Error('an item of the archive was not read to its end');
  }

  async assertEnd(): Promise<void> {
    if ((await this.#read()) !== null) throw new DamagedFile('something stands behind its manifest');
  }

  async #read(): Promise<TarEntry | null> {
    const next = await this.#tar.next();
    return next.done === true ? null : next.value;
  }
}

function parse<T extends TSchema>(schema: T, content: Buffer): Static<T> {
  try {
    const value: unknown = JSON.parse(content.toString());
    if (Value.Check(schema, value)) return value as Static<T>;
  } catch {
    // It is no JSON.
  }
  throw new DamagedFile('what it says of itself cannot be read');
}

function compare(expected: Manifest, found: Manifest): void {
  const there = new Map(found.tables.map((table) => [table.name, table]));
  for (const table of expected.tables) {
    if (JSON.stringify(there.get(table.name)) !== JSON.stringify(table))
      throw new DamagedFile(`the table ${table.name} is not as it was written`);
  }
  if (JSON.stringify(expected) !== JSON.stringify(found))
    throw new DamagedFile('its tables or files are not as they were written');
}

/** Decompresses the file to its last byte: nothing may stand behind the compressed data. */
async function* readGzip(path: string, { progress }: ArchiveVisitor): AsyncGenerator<Buffer> {
  const { size } = await stat(path);
  await assertGzip(path);
  const gunzip = createGunzip({ chunkSize: READ_BYTES });
  const file = createReadStream(path, { highWaterMark: READ_BYTES });
  file.on('error', (error) => gunzip.destroy(error));
  file.pipe(gunzip);
  try {
    for await (const chunk of gunzip) {
      yield chunk as Buffer;
      progress?.(file.bytesRead, size);
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!code.startsWith('Z_')) throw error;
    throw new DamagedFile(code === 'Z_BUF_ERROR' ? 'it ends too early' : 'its bytes were changed', {
      cause: error,
    });
  } finally {
    file.destroy();
    gunzip.destroy();
  }
  if (gunzip.bytesWritten !== size) throw new DamagedFile('something stands behind its end');
}

async function assertGzip(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    // Magic number, method deflate, no optional fields.
    if (bytesRead < 4 || buffer.readUInt32BE(0) !== 0x1f8b0800)
      throw new DamagedFile('it is no backup of sluice');
  } finally {
    await file.close();
  }
}
