import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { DamagedFile } from '../domain/errors.ts';
import { READ_BYTES } from '../domain/limits.ts';
import { About, archiveFormat, Contents, type Item, Manifest, Meter, partName } from './archive.ts';
import { readTar, type TarEntry } from './tar.ts';

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
