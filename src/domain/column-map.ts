import { inputError } from '../base/errors.ts';
import { MAX_MAPPED_COLUMNS } from '../base/limits.ts';

/**
 * Maps column names in the file's header, or keys of its records, to field names of sluice. A
 * column that is mapped to an empty name is skipped.
 */
export type ColumnMap = Readonly<Record<string, string>>;

type Pair = readonly [theirs: string, ours: string];

const notPairs = 'map must be pairs like Their Header=user_id, or an object like {"Their Header":"user_id"}';

/**
 * Reads `Their Header=user_id`, JSON, or pairs separated by commas. A header can contain commas.
 * Returns the problem as a sentence if an argument is invalid.
 */
export function readColumnMap(texts: readonly string[]): ColumnMap | string {
  return collect(texts, splitPairs);
}

/** Reads arguments of the command line. An argument is either a pair or a JSON object. */
export function readColumnPairs(texts: readonly string[]): ColumnMap | string {
  return collect(texts, (text) => splitPair(text, text.lastIndexOf('=')));
}

function collect(
  texts: readonly string[],
  split: (text: string) => readonly Pair[] | null,
): ColumnMap | string {
  const map = new Map<string, string>();
  let pairs = 0;
  for (const text of texts) {
    const entries = readObject(text) ?? split(text);
    if (entries === null) return notPairs;
    pairs += entries.length;
    if (pairs > MAX_MAPPED_COLUMNS) return `map may name ${MAX_MAPPED_COLUMNS} columns`;
    for (const [theirs, ours] of entries) {
      if (![theirs, ours].every(isStorable))
        return 'map holds U+0000 or half a surrogate pair, which no name may';
      if ((map.get(theirs) ?? ours) !== ours) return twoNames(theirs);
      map.set(theirs, ours);
    }
  }
  return Object.fromEntries(map);
}

/**
 * Reads a JSON object, or returns `null`. Only the JSON form can map a column to an empty name,
 * because the pair `Header=` is usually a mistake.
 */
function readObject(text: string): Pair[] | null {
  if (!/^\s*\{.*\}\s*$/s.test(text)) return null;
  try {
    const pairs = Object.entries(JSON.parse(text) as Readonly<Record<string, unknown>>);
    const isNamed = ([theirs, ours]: [string, unknown]) => theirs !== '' && typeof ours === 'string';
    return pairs.length > 0 && pairs.every(isNamed) ? (pairs as [string, string][]) : null;
  } catch {
    return null;
  }
}

function splitPair(text: string, at: number): Pair[] | null {
  const pair: Pair = [text.slice(0, Math.max(0, at)).trim(), text.slice(at + 1).trim()];
  return pair.includes('') ? null : [pair];
}

function splitPairs(text: string): Pair[] | null {
  const pairs: Pair[] = [];
  let header = '';
  for (const piece of text.split(',')) {
    const at = piece.lastIndexOf('=');
    header += at < 0 ? `${piece},` : piece.slice(0, at);
    if (at < 0) continue;
    const pair: Pair = [header.trim(), piece.slice(at + 1).trim()];
    if (pair.includes('')) return null;
    pairs.push(pair);
    header = '';
  }
  return header.replaceAll(',', '').trim() !== '' || text.trim() === '' ? null : pairs;
}

const twoNames = (column: string) => `map gives ${JSON.stringify(column)} two names`;

function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/**
 * Returns the position of a column named `column_1`, `column_2` and so on, counted from 0. `null`
 * for other names.
 */
export function positionOf(name: string): number | null {
  const [, number] = /^column_([1-9]\d{0,4})$/.exec(name.trim()) ?? [];
  return number === undefined ? null : Number(number) - 1;
}

/**
 * Returns the map with its column names spelled as in the header. Blanks at the ends of names are
 * ignored. `column_2` means the second column, unless there is a column called `column_2`. If the
 * file has no header, `2` also means the second column. Names that match no column are kept.
 * @throws InputError `invalid_field` if two names of one column are mapped to different names
 */
export function resolveMap(map: ColumnMap, columns: readonly string[], hasHeader: boolean): ColumnMap {
  const trimmed = new Map(columns.map((name) => [name.trim(), name]));
  const exact = new Set(columns);
  const resolve = (theirs: string): string => {
    if (exact.has(theirs)) return theirs;
    const numbered =
      !hasHeader && /^[1-9]\d{0,4}$/.test(theirs.trim()) ? columns[Number(theirs) - 1] : undefined;
    const position = positionOf(theirs);
    return numbered ?? trimmed.get(theirs.trim()) ?? columns[position ?? -1] ?? theirs;
  };
  const resolved = new Map<string, string>();
  for (const [theirs, ours] of Object.entries(map)) {
    const column = resolve(theirs);
    if ((resolved.get(column) ?? ours) !== ours) throw inputError('invalid_field', twoNames(column), 'map');
    resolved.set(column, ours);
  }
  return Object.fromEntries(resolved);
}
