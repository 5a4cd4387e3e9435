import { idColumn } from '../domain/entity.ts';
import { InputError, inputError, type Problem } from '../domain/errors.ts';
import { MAX_COLUMNS, MAX_HEADER_NOTES, MAX_HEADER_PROBLEMS } from '../domain/limits.ts';
import { isRejectColumn } from '../domain/reject.ts';

/** What a caller says of the names of a CSV. */
export interface NameHints {
  /** Their header → our name. */
  readonly map: Readonly<Record<string, string>>;
  /** Refuses columns that have no name, or the same. */
  readonly strict: boolean;
  /** We wrote the file: a name has the blanks that it has. */
  readonly isOurs: boolean;
}

/** Names of columns, all different. */
interface Names {
  readonly columns: readonly string[];
  /** Of names that are not in the header, a sentence each. */
  readonly notes: readonly string[];
}

/** Columns that say what a record is: which of two would be meant must not be guessed. */
const keyColumns: ReadonlySet<string> = new Set([
  ...Object.values(idColumn),
  'event_type',
  'event_id',
  'insert_id',
  'event_name',
  'inserted_at',
  'metadata',
]);

/**
 * The names of the columns whose header cells these are. Blanks round them are no part of them; a column without a name, or with
 * one that another has, is given one: `column_7`, `name_2`.
 * @throws InputError `invalid_field` for too many columns, U+0000, two key columns of one name; with `strict` for each name that
 *   is missing or repeated.
 */
export function nameColumns(cells: readonly string[], hints: NameHints): Names {
  if (cells.length > MAX_COLUMNS) {
    const message = `The header has ${cells.length} columns; at most ${MAX_COLUMNS} are taken`;
    throw inputError('invalid_field', message);
  }
  const names = hints.isOurs ? cells : cells.map((cell) => cell.trim());
  const [first, ...more] = findProblems(names, hints);
  if (first !== undefined) throw new InputError(first, ...more);
  return distinctNames(names);
}

/** What the columns of a file without a header are called. */
export function numberedColumns(count: number): string[] {
  return Array.from({ length: count }, (_, index) => numbered(index));
}

/** The names that several records give together: one below the other, with a blank between. */
export function joinRows(rows: readonly (readonly string[])[]): string[] {
  const [first = [], ...more] = rows;
  if (more.length === 0) return [...first];
  const count = Math.max(...rows.map((row) => row.length));
  return Array.from({ length: count }, (_, index) =>
    rows
      .map((row) => (row[index] ?? '').trim())
      .filter((name) => name !== '')
      .join(' '),
  );
}

/** The names with every one that is missing or repeated replaced. Linear: of a name no number is tried twice. */
export function distinctNames(names: readonly string[]): Names {
  const written = new Set(names);
  const taken = new Set<string>();
  const numbers = new Map<string, number>();
  const notes: string[] = [];
  const columns = names.map((name, index) => {
    if (name !== '' && !taken.has(name)) {
      taken.add(name);
      return name;
    }
    const base = name === '' ? numbered(index) : name;
    let number = numbers.get(base) ?? (name === '' ? 0 : 1);
    let given: string;
    do given = ++number === 1 ? base : `${base}_${number}`;
    while (written.has(given) || taken.has(given));
    numbers.set(base, number);
    taken.add(given);
    if (notes.length < MAX_HEADER_NOTES) notes.push(describe(name, index, given));
    return given;
  });
  return { columns, notes };
}

function numbered(index: number): string {
  return `column_${index + 1}`;
}

function describe(name: string, index: number, given: string): string {
  if (name === '') return `Column ${index + 1} has no name in the header; it is called "${given}".`;
  return `The header names the column "${shown(name)}" more than once; column ${index + 1} is called "${shown(given)}".`;
}

/** A sentence is no place for a name of a megabyte. */
function shown(name: string): string {
  return name.length > 100 ? `${name.slice(0, 100).toWellFormed()}…` : name;
}

function findProblems(names: readonly string[], { map, strict }: NameHints): Problem[] {
  const positions = new Map<string, number[]>();
  names.forEach((name, index) => {
    const at = positions.get(name);
    if (at === undefined) positions.set(name, [index + 1]);
    else at.push(index + 1);
  });
  const meanings = new Map(Object.entries(map).map(([name, meaning]) => [name.trim(), meaning]));
  const problems: Problem[] = [];
  for (const [name, at] of positions) {
    if (problems.length === MAX_HEADER_PROBLEMS) break;
    if (name.includes('\0')) problems.push(invalid('The header has a name that holds U+0000', at));
    else if (name === '' && strict) problems.push(invalid('The header has a column without a name', at));
    else if (name !== '' && at.length > 1 && (strict || keyColumns.has(meanings.get(name) ?? name)))
      problems.push(invalid(`The header names the column "${name}" more than once`, at));
  }
  return problems;
}

function invalid(message: string, positions: readonly number[]): Problem {
  const shownPositions = positions.slice(0, MAX_HEADER_PROBLEMS).join(', ');
  const more = positions.length > MAX_HEADER_PROBLEMS ? ', …' : '';
  const details = `header: ${positions.length > 1 ? 'columns' : 'column'} ${shownPositions}${more}`;
  return { code: 'invalid_field', message, details };
}

const keys: ReadonlySet<string> = new Set(Object.values(idColumn));

/** Whether one of these cells is the name of an id column. */
export function namesId(cells: readonly string[]): boolean {
  return cells.some((cell) => keys.has(cell.trim()));
}

/** A header of positions, as files of refused records have it; among other cells a number is more likely a value. */
export function isNumbered(cells: readonly string[]): boolean {
  return cells.every((cell) => /^(?:column_)?\d{1,5}$/.test(cell.trim()) || isRejectColumn(cell.trim()));
}
