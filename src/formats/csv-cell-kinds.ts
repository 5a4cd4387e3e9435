/*
 * Guesses from the form of cells whether they are values or column names.
 */

type CellKind = 'empty' | 'number' | 'date' | 'mail' | 'address' | 'uuid' | 'word' | 'other';

/** A longer cell is of the kind `other`. */
const maxKindChars = 200;

const kinds: readonly (readonly [CellKind, RegExp])[] = [
  ['number', /^[-+]?[$€£]?(?:\d+|\d{1,3}(?:[,. ']\d{3})+)(?:[.,]\d+)?(?:[eE][-+]?\d+)?\s?[%€$£]?$/],
  ['date', /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s?(?:Z|[-+]\d{2}:?\d{2}|UTC)?)?$/],
  ['date', /^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}(?:,? \d{1,2}:\d{2}(?::\d{2})?(?: ?[AP]M)?)?$/i],
  ['date', /^\d{1,2}:\d{2}(?::\d{2})?(?: ?[AP]M)?$/i],
  ['mail', /^[^\s@,;|"']+@[^\s@,;|"']+\.[^\s@,;|"']+$/],
  ['address', /^https?:\/\/[^\s"]+$/i],
  ['uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i],
  ['word', /^[\p{L}\p{N}_][\p{L}\p{N}\p{M}_.\-'/()& ]*$/u],
];

export function kindOf(cell: string): CellKind {
  const text = cell.trim();
  if (text === '') return 'empty';
  if (text.length > maxKindChars) return 'other';
  return kinds.find(([, pattern]) => pattern.test(text))?.[0] ?? 'other';
}

function isData(kind: CellKind): boolean {
  return kind === 'number' || kind === 'date' || kind === 'mail' || kind === 'address' || kind === 'uuid';
}

/**
 * Returns true if the first record is probably data. At least one of its cells must be data of the
 * same kind as the cells below it. No cell may be a word above a column of data.
 */
export function startsWithData(records: readonly (readonly string[])[], width: number): boolean {
  const [first, ...others] = records.filter((record) => record.length === width);
  if (first === undefined || others.length === 0) return false;
  let evidence = 0;
  for (const [index, cell] of first.entries()) {
    const kind = kindOf(cell);
    const filled = others.map((record) => kindOf(record[index] as string)).filter((each) => each !== 'empty');
    if (kind === 'empty' || filled.length === 0) continue;
    const isUsual = (matches: (each: CellKind) => boolean) =>
      filled.filter(matches).length >= 0.9 * filled.length;
    if (!isData(kind) && isUsual(isData)) return false;
    if (isData(kind) && isUsual((each) => each === kind) && !mayBeName(cell, index)) evidence++;
  }
  return evidence > 0;
}

/**
 * Returns true if the first record is a real header and each column in `positions` can be addressed
 * only by position. Such a column either has no name and no empty value, or shares its name with
 * another column. A shared name counts only if at least one named column contains only data.
 */
export function needsPositions(
  records: readonly (readonly string[])[],
  width: number,
  positions: readonly (number | null)[],
): boolean {
  const [first = [], ...others] = records.filter((record) => record.length === width);
  if (others.length === 0 || first.some((cell) => isData(kindOf(cell)))) return false;
  const isAll = (index: number, matches: (kind: CellKind) => boolean) =>
    others.every((record) => matches(kindOf(record[index] as string)));
  const isAboveData = first.some((cell, index) => cell.trim() !== '' && isAll(index, isData));
  return positions.every((index) => {
    const name = index === null ? undefined : first[index];
    if (index === null || name === undefined) return false;
    if (name.trim() === '') return isAll(index, (kind) => kind !== 'empty');
    return isAboveData && first.filter((cell) => cell === name).length > 1;
  });
}

/** True for a number that may be a name: a year, or the position of the column itself. */
function mayBeName(cell: string, index: number): boolean {
  const text = cell.trim();
  return /^(?:19|20)\d\d$/.test(text) || text === String(index) || text === String(index + 1);
}

/**
 * Returns the index of the first record that may contain names, or -1. The record must have `width`
 * different cells, and none of them may be empty or data.
 */
export function findNames(records: readonly (readonly string[])[], width: number): number {
  return records.findIndex(
    (cells) =>
      cells.length === width &&
      new Set(cells).size === width &&
      cells.every((cell) => cell.trim() !== '' && !isData(kindOf(cell))),
  );
}
