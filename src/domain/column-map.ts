import { inputError } from '../base/errors.ts';
import { MAX_MAPPED_COLUMNS } from '../base/limits.ts';

/**
 * Maps names in the header, or keys of records, to field names of sluice. An empty field name skips
 * the column.
 */
export type ColumnMap = Readonly<Record<string, string>>;

type Pair = readonly [theirs: string, ours: string];

const notPairs = 'map must be pairs like Their Header=user_id, or an object like {"Their Header":"user_id"}';

/**
 * Reads `Their Header=user_id`, JSON, or several pairs separated by commas. Headers may contain
 * commas. Returns the problem if the text is invalid.
 */
export function readColumnMap(texts: readonly string[]): ColumnMap | string {
  return collect(texts, splitPairs);
}

/** An argument of the command line is one pair or a JSON object. */
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
 * Reads a map that is written as a JSON object. Returns `null` for text that is not such a map.
 * Only JSON can map to an empty name: the pair `Header=` is usually a mistake.
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
 * Returns the position, from 0, that a name such as `column_1` or `column_2` states. Returns `null`
 * for other names.
 */
export function positionOf(name: string): number | null {
  const [, number] = /^column_([1-9]\d{0,4})$/.exec(name.trim()) ?? [];
  return number === undefined ? null : Number(number) - 1;
}

/**
 * Returns the map with names spelled as in the header. Blanks at the ends of names are ignored.
 * `column_2` means the second column unless a column has this name. If there is no header, `2` also
 * means the second column. Unmatched names are kept.
 * @throws InputError `invalid_field` if one column is mapped to two names
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
