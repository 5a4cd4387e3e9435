import { createHash } from 'node:crypto';

/**
 * A profile of the table: the company, and the properties in the order of `properties`. '' is
 * absent.
 */
export type Profile = readonly string[];

export const properties = ['plan', 'country', 'score', 'note'] as const;
const header = `user_id,company_id,${properties.join(',')}\n`;

/** A deterministic CSV of users, and the result of its serial load. */
export interface ProfileFile {
  readonly bytes: Buffer;
  readonly rows: number;
  /** Number of keys, without the keys of refused records. */
  readonly keys: number;
  /** Row numbers of the records that must be refused, ascending. */
  readonly refused: readonly number[];
  /** Returns the first key at or after `row` (from 0) that is in one row only. */
  loneKey(row: number): string;
  /** Applies the records to `table` one by one: the serial oracle. */
  applyTo(table: Map<string, Profile>): void;
}

/** Row numbers begin at 1 (see `load_rejects.row_number`). */
const firstRow = 1;

/**
 * Creates a CSV. A quarter of the rows repeats any earlier key, a sixteenth a recent one. Values
 * differ in every row, some cells are empty or have two lines, and some records lack their key.
 */
export function createProfileFile({
  rows,
  seed = 1,
  allValid = false,
  keylessEvery = 9_973,
}: {
  readonly rows: number;
  readonly seed?: number;
  readonly allValid?: boolean;
  /** Interval of records without a key, about. */
  readonly keylessEvery?: number;
}): ProfileFile {
  const lines: string[] = [header];
  const records: (readonly [key: string, cells: readonly string[]])[] = [];
  const refused: number[] = [];
  const keys = new Map<string, number>();
  for (let row = 0; row < rows; row++) {
    const hash = scramble(row + seed * 1_000_003);
    const cells = [
      hash % 3 === 0 ? '' : `co${hash % 300}`,
      ['free', 'pro', '', 'team'][hash & 3] ?? '',
      hash % 7 === 0 ? '' : `c${hash % 50}`,
      `${seed}.${row}`,
      hash % 997 === 0 ? `two\nlines, "quoted"` : '',
    ];
    const isKeyless = hash % keylessEvery === 0 && !allValid;
    const key = isKeyless ? '' : keyOf(row, hash);
    lines.push(`${key},${cells.map(quote).join(',')}\n`);
    if (key === '') {
      refused.push(row + firstRow);
      continue;
    }
    keys.set(key, (keys.get(key) ?? 0) + 1);
    records.push([key, cells]);
  }
  return {
    bytes: Buffer.from(lines.join('')),
    rows,
    keys: keys.size,
    refused,
    loneKey(from) {
      for (let row = from; row < rows; row++) if (keys.get(keyAt(row)) === 1) return keyAt(row);
      throw new Error(`no key from row ${from} on stands alone`);
    },
    applyTo(table) {
      for (const [key, cells] of records) {
        const stored = table.get(key);
        table.set(
          key,
          cells.map((cell, at) => (cell === '' ? (stored?.[at] ?? '') : cell)),
        );
      }
    },
  };
}

/** Returns the expected table after these files in order. */
export function oracleOf(...files: readonly ProfileFile[]): ReadonlyMap<string, Profile> {
  const table = new Map<string, Profile>();
  for (const file of files) file.applyTo(table);
  return table;
}

/** Returns the key of a row that repeats no other. */
function keyAt(row: number): string {
  return `u${String(row).padStart(7, '0')}`;
}

function keyOf(row: number, hash: number): string {
  if (row > 8 && row % 4 === 3) return keyAt(hash % row);
  if (row > 8 && row % 16 === 8) return keyAt(row - 3);
  return keyAt(row);
}

function quote(cell: string): string {
  return /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/** The finaliser of murmur3. */
function scramble(value: number): number {
  let hash = value | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Returns one line per profile by key. `exactness.ts` renders the table of the database alike. */
export function renderTable(table: ReadonlyMap<string, Profile>): string[] {
  return [...table.keys()].sort().map((key) => [key, ...(table.get(key) ?? [])].join('|'));
}

export function digest(lines: readonly string[]): string {
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}
