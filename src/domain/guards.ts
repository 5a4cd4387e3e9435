// Guards are checked before a load writes. A limit fails a load that would refuse, change or remove
// too much. The volume guard holds a load that differs from given figures or its source's latest
// loads, until a person decides.
import { keepableText } from '../base/errors.ts';
import { MAX_COLUMNS, MAX_SHOWN_COLUMNS } from '../base/limits.ts';
import { formatCount, plural } from '../base/wording.ts';

const MIN_USUAL_LOADS = 3;

/** A number, or a percentage of the file's records. */
export type GuardLimit = { readonly count: number } | { readonly percent: number };

/** With more than this, a load fails and writes nothing. */
export type Limits<T> = Readonly<Record<'maxErrors' | 'maxChanged' | 'maxRemovedValues', T | null>>;

export const noLimits: Limits<never> = { maxErrors: null, maxChanged: null, maxRemovedValues: null };

export const guardRule = 'must be a number such as 100, or a share such as 5%';
export const guardPattern = '^(\\d{1,15}|(\\d{1,2}(\\.\\d{1,6})?|100(\\.0{1,6})?)%)$';

type Given = number | string | undefined;

export function readLimits(given: {
  readonly max_errors?: Given;
  readonly max_changed?: Given;
  readonly max_removed_values?: Given;
}): Limits<GuardLimit> {
  return {
    maxErrors: readLimit(given.max_errors),
    maxChanged: readLimit(given.max_changed),
    maxRemovedValues: readLimit(given.max_removed_values),
  };
}

export function readLimit(value: Given): GuardLimit | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && value.endsWith('%')) return { percent: Number(value.slice(0, -1)) };
  return { count: Number(value) };
}

export function countLimits(limits: Limits<GuardLimit>, totalRows: number): Limits<number> {
  return {
    maxErrors: allowed(limits.maxErrors, totalRows),
    maxChanged: allowed(limits.maxChanged, totalRows),
    maxRemovedValues: allowed(limits.maxRemovedValues, totalRows),
  };
}

function allowed(limit: GuardLimit | null, totalRows: number): number | null {
  if (limit === null) return null;
  return 'count' in limit ? limit.count : Math.floor((totalRows * limit.percent) / 100);
}

export type VolumeGuard =
  | 'usual'
  | { readonly rows?: string; readonly max_rejected?: string | number; readonly columns?: readonly string[] };

export const volumeGuardRule =
  'must be usual, or figures such as rows=900..1100 max_rejected=2% columns=user_id,plan';

const rangePattern = /^(\d{1,15})?\.\.(\d{1,15})?$/;

/**
 * Reads `usual`, or figures as text (`rows=900.. max_rejected=2%`), JSON or object, or undefined.
 */
export function readVolumeGuard(given: unknown): VolumeGuard | undefined {
  if (given === 'usual') return given;
  const figures = typeof given === 'string' ? figuresOf(given.trim()) : given;
  if (typeof figures !== 'object' || figures === null) return undefined;
  const { rows, max_rejected, columns, ...others } = figures as Readonly<Record<string, unknown>>;
  const isRight =
    Object.keys(others).length === 0 &&
    Object.keys(figures).length > 0 &&
    (rows === undefined || isRange(rows)) &&
    (max_rejected === undefined || new RegExp(guardPattern).test(String(max_rejected))) &&
    (columns === undefined || isNames(columns));
  return isRight ? (figures as VolumeGuard) : undefined;
}

function figuresOf(text: string): unknown {
  try {
    if (text.startsWith('{')) return JSON.parse(text);
  } catch {
    return undefined;
  }
  const terms = text.split(/\s+/).map((term): [string, unknown] => {
    const [name = '', ...rest] = term.split('=');
    const value = rest.join('=');
    return [name, name === 'columns' ? value.split(',') : value];
  });
  return Object.fromEntries(terms);
}

function isRange(given: unknown): boolean {
  const [, least, most] = rangePattern.exec(String(given)) ?? [];
  return (least !== undefined || most !== undefined) && Number(least ?? 0) <= Number(most ?? Infinity);
}

function isNames(given: unknown): boolean {
  return (
    Array.isArray(given) &&
    given.length > 0 &&
    given.length <= MAX_COLUMNS &&
    given.every((name) => typeof name === 'string' && name !== '' && keepableText(name) === name)
  );
}

/** Only tables have columns. */
export interface FileFigures {
  readonly rows: number;
  readonly rejected: number;
  readonly columns: readonly string[] | null;
}

interface Expected {
  readonly rows: readonly [least: number, most: number];
  readonly rejected: number;
  /** Required and permitted columns. `null` for any. */
  readonly columns: { readonly needed: readonly string[]; readonly known: readonly string[] } | null;
}

export interface Surprise {
  readonly figure: 'rows' | 'columns' | 'rejected';
  readonly message: string;
}

/** `past` are the source's latest loads. `usual` expects nothing below MIN_USUAL_LOADS. */
export function findSurprises(
  guard: VolumeGuard,
  file: FileFigures,
  past: readonly FileFigures[],
): Surprise[] {
  const isUsual = guard === 'usual';
  if (isUsual && past.length < MIN_USUAL_LOADS) return [];
  const { rows, rejected, columns } = isUsual ? usualOf(past, file.rows) : given(guard, file.rows);
  const word = isUsual ? 'usual' : 'expected';
  const found: [Surprise['figure'], isHit: boolean, message: string][] = [
    [
      'rows',
      file.rows < rows[0] || file.rows > rows[1],
      `${plural(file.rows, 'row')}; ${word}: ${describeRange(rows)}`,
    ],
    [
      'rejected',
      file.rejected > rejected,
      `${formatCount(file.rejected)} of ${plural(file.rows, 'record')} refused; ${word}: at most ${formatCount(rejected)}`,
    ],
  ];
  if (columns !== null && file.columns !== null) {
    const own = new Set(file.columns);
    const known = new Set(columns.known);
    const missing = columns.needed.filter((name) => !own.has(name));
    const added = file.columns.filter((name) => !known.has(name));
    found.push(['columns', missing.length > 0, `missing: ${listNames(missing)}`]);
    found.push(['columns', added.length > 0, `new: ${listNames(added)}`]);
  }
  return found.flatMap(([figure, isHit, message]) => (isHit ? [{ figure, message }] : []));
}

/** Margins around the range of past loads. */
const rowsShare = 0.25;
const rowsLeast = 10;
const rejectedShare = 0.01;

function usualOf(past: readonly FileFigures[], ownRows: number): Expected {
  const rows = past.map((each) => each.rows);
  const [least, most] = [Math.min(...rows), Math.max(...rows)];
  const slack = (count: number): number => Math.max(Math.ceil(count * rowsShare), rowsLeast);
  const rejected = Math.max(...past.map((each) => each.rejected / Math.max(each.rows, 1))) + rejectedShare;
  const tables = past.flatMap(({ columns }) => (columns === null ? [] : [columns]));
  const known = [...new Set(tables.flat())];
  const needed = known.filter((name) => tables.every((columns) => columns.includes(name)));
  return {
    rows: [Math.max(least - slack(least), 0), most + slack(most)],
    rejected: Math.floor(rejected * ownRows),
    columns: tables.length < past.length ? null : { needed, known },
  };
}

function given({ rows, max_rejected, columns }: Exclude<VolumeGuard, 'usual'>, ownRows: number): Expected {
  const [, least = 0, most = Infinity] = rangePattern.exec(rows ?? '..') ?? [];
  return {
    rows: [Number(least), Number(most)],
    rejected: allowed(readLimit(max_rejected), ownRows) ?? Infinity,
    columns: columns === undefined ? null : { needed: columns, known: columns },
  };
}

function describeRange([least, most]: Expected['rows']): string {
  if (most === Infinity) return `at least ${formatCount(least)}`;
  return least === 0 ? `at most ${formatCount(most)}` : `${formatCount(least)} to ${formatCount(most)}`;
}

function listNames(names: readonly string[]): string {
  const more = names.length - MAX_SHOWN_COLUMNS;
  const shown = names.slice(0, MAX_SHOWN_COLUMNS).map(keepableText).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}
