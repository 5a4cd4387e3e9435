import { createHash } from 'node:crypto';

/**
 * A stored user: the company id, then the properties in the order of `properties`. An empty string
 * represents a missing value.
 */
export type Profile = readonly string[];

export const properties = ['plan', 'country', 'score', 'note'] as const;
const header = `user_id,company_id,${properties.join(',')}\n`;

/**
 * A CSV of users that is the same in each run, with the result of loading its records one by one.
 */
export interface ProfileFile {
  readonly bytes: Buffer;
  readonly rows: number;
  /** Number of distinct keys, without those of refused records. */
  readonly keys: number;
  /** Row numbers of the records that must be refused, in ascending order. */
  readonly refused: readonly number[];
  /**
   * Returns the first key that occurs only once, searching from the row with index `row` (from 0).
   */
  loneKey(row: number): string;
  /** Applies the records to `table` one by one. Tests compare the database with the result. */
  applyTo(table: Map<string, Profile>): void;
}

/** Row numbers start at 1, as in `load_rejects.row_number`. */
const firstRow = 1;

/**
 * Creates a CSV. A quarter of the rows repeat a random earlier key, and a sixteenth repeat a recent
 * key. Values differ in every row, some cells are empty or have two lines, and some records lack
 * their key.
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
  /** On average, one in `keylessEvery` records lacks its key. */
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

/** Returns the table that must result from loading the files in order. */
export function oracleOf(...files: readonly ProfileFile[]): ReadonlyMap<string, Profile> {
  const table = new Map<string, Profile>();
  for (const file of files) file.applyTo(table);
  return table;
}

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

/** The finaliser of the hash function murmur3. */
function scramble(value: number): number {
  let hash = value | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/**
 * Returns one line per profile, sorted by key. `exactness.ts` renders the database in the same
 * format.
 */
export function renderTable(table: ReadonlyMap<string, Profile>): string[] {
  return [...table.keys()].sort().map((key) => [key, ...(table.get(key) ?? [])].join('|'));
}

export function digest(lines: readonly string[]): string {
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}
