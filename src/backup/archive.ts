/*
 * The file that a backup is: a tar, compressed by gzip, with these entries in this order.
 *
 *     backup.json              what it is, and the shape of the database
 *     files/<name>/000001 …    stored files
 *     tables/<name>/000001 …   rows as COPY writes them in its text format
 *     manifest.json            how many bytes and rows there are, and their SHA-256
 *
 * A file or table is cut into parts of up to BACKUP_PART_BYTES, because tar wants sizes first; put together they are the whole.
 * Written (`write-archive.ts`) and read (`read-archive.ts`) in one pass, with a bounded memory. docs/decisions/backup.md has the reasons.
 */
import { createHash, type Hash } from 'node:crypto';
import { type Static, Type } from 'typebox';
import type { DatabaseShape } from '../database-copy/read-database.ts';

/** Raised when an archive is written that earlier versions of sluice would misread. */
export const archiveFormat = 1;

const text = Type.String();
const whole = Type.Integer({ minimum: 0 });

export const About = Type.Object({
  format: whole,
  sluice: text,
  created_at: text,
  /** Whether stored files are in it; else where they are. */
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
  /** Line ends: of a table, the rows. */
  readonly lines: number;
  readonly sha256: string;
}

/** Adds up what goes by. */
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

/** The entry that has a part of an item, counted from 1. */
export function partName({ kind, name }: Item, part: number): string {
  return `${kind}/${name}/${String(part).padStart(6, '0')}`;
}
