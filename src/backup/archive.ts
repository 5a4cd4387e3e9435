/*
 * A backup is a tar, compressed with gzip, with these entries in this order.
 *
 *     backup.json              what it is, and the shape of the database
 *     files/<name>/000001 …    stored files
 *     tables/<name>/000001 …   rows as COPY writes them in its text format
 *     manifest.json            how many bytes and rows there are, and their SHA-256
 *
 * A file or table is cut into parts of up to BACKUP_PART_BYTES, because tar wants sizes first. An archive is written and read
 * (`read-archive.ts`) in one pass, with bounded memory. docs/decisions/backup.md has the reasons.
 */
import { createHash, type Hash } from 'node:crypto';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type Static, Type } from 'typebox';
import { BACKUP_PART_BYTES } from '../domain/limits.ts';
import type { DatabaseShape } from '../postgres/database-copy/read-database.ts';
import { type TarEntry, tarEnd, tarEntry } from './tar.ts';

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
  database: Type.Object({
    serverVersion: text,
    at: text,
    migrations: Type.Array(Type.Object({ name: text, digest: text })),
    tables: Type.Array(
      Type.Object({
        name: text,
        columns: Type.Array(Type.Object({ name: text, type: text })),
        kind: Type.Union([Type.Literal('table'), Type.Literal('events'), Type.Literal('retired_events')]),
        rowsExpected: Type.Number(),
      }),
    ),
    sequences: Type.Array(Type.Object({ name: text, lastValue: text, isCalled: Type.Boolean() })),
  }),
});
export type About = Omit<Static<typeof About>, 'database'> & { readonly database: DatabaseShape };

const Table = Type.Object({ name: text, rows: whole, bytes: whole, sha256: text });
export const Manifest = Type.Object({
  tables: Type.Array(Table),
  files: Type.Object({ count: whole, bytes: whole, sha256: text }),
});
export type Manifest = Static<typeof Manifest>;

/** A stored file, or the rows of a table. */
export interface Item {
  readonly kind: 'files' | 'tables';
  readonly name: string;
}

export interface Content {
  readonly bytes: number;
  /** Line ends; in a table these are the rows. */
  readonly lines: number;
  readonly sha256: string;
}

/** Adds up the content of all items. */
export class Contents {
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

export class Meter {
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

/** Returns the name of the entry for a part of an item, counted from 1. */
export function partName({ kind, name }: Item, part: number): string {
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
