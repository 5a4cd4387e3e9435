// Guards check a load before it writes. Limits fail a load that would refuse, change or remove too
// much. The volume guard compares a load with figures in the request, or with the latest loads of
// its source. A load that differs is held until a person decides.
import { keepableText } from '../base/errors.ts';
import { MAX_COLUMNS, MAX_SHOWN_COLUMNS } from '../base/limits.ts';
import { formatCount, plural } from '../base/wording.ts';

const MIN_USUAL_LOADS = 3;

/** A limit: a number of records, or a percentage of the file's records. */
export type GuardLimit = { readonly count: number } | { readonly percent: number };

/** A load that exceeds one of these limits fails without writing anything. */
export type Limits<T> = Readonly<Record<'maxErrors' | 'maxChanged' | 'maxRemovedValues', T | null>>;

export const noLimits: Limits<never> = { maxErrors: null, maxChanged: null, maxRemovedValues: null };

export const guardRule = 'must be a number such as 100, or a share such as 5%';
export const guardPattern = '^(\\d{1,15}|(\\d{1,2}(\\.\\d{1,6})?|100(\\.0{1,6})?)%)$';

type LimitValue = number | string | undefined;

export function readLimits(options: {
  readonly max_errors?: LimitValue;
  readonly max_changed?: LimitValue;
  readonly max_removed_values?: LimitValue;
}): Limits<GuardLimit> {
  return {
    maxErrors: readLimit(options.max_errors),
    maxChanged: readLimit(options.max_changed),
    maxRemovedValues: readLimit(options.max_removed_values),
  };
}

export function readLimit(value: LimitValue): GuardLimit | null {
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
 * Reads a volume guard: `usual`, or figures as an object, JSON, or text such as `rows=900..
 * max_rejected=2%`.
 */
export function readVolumeGuard(value: unknown): VolumeGuard | undefined {
  if (value === 'usual') return value;
  const figures = typeof value === 'string' ? figuresOf(value.trim()) : value;
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

function isRange(value: unknown): boolean {
  const [, min, max] = rangePattern.exec(String(value)) ?? [];
  return (min !== undefined || max !== undefined) && Number(min ?? 0) <= Number(max ?? Infinity);
}

function isNames(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MAX_COLUMNS &&
    value.every((name) => typeof name === 'string' && name !== '' && keepableText(name) === name)
  );
}

/** Figures of a file. `columns` is `null` if the file is not a table. */
export interface FileFigures {
  readonly rows: number;
  readonly rejected: number;
  readonly columns: readonly string[] | null;
}

interface Expected {
  readonly rows: readonly [min: number, max: number];
  readonly rejected: number;
  /**
   * `needed` are the columns that the file must have. `allowed` are all columns that it may have.
   * `columns` is `null` if the file may have any columns.
   */
  readonly columns: { readonly needed: readonly string[]; readonly allowed: readonly string[] } | null;
}

export interface Surprise {
  readonly figure: 'rows' | 'columns' | 'rejected';
  readonly message: string;
}

/**
 * Returns the file's figures that the guard does not expect. `past` are the latest loads of the
 * source. The guard `usual` needs at least MIN_USUAL_LOADS of them.
 */
export function findSurprises(
  guard: VolumeGuard,
  file: FileFigures,
  past: readonly FileFigures[],
): Surprise[] {
  const isUsual = guard === 'usual';
  if (isUsual && past.length < MIN_USUAL_LOADS) return [];
  const expected = isUsual ? usualOf(past, file.rows) : expectedBy(guard, file.rows);
  const { rows, rejected, columns } = expected;
  const word = isUsual ? 'usual' : 'expected';
  const checks: [Surprise['figure'], isHit: boolean, message: string][] = [
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
    const names = new Set(file.columns);
    const allowedNames = new Set(columns.allowed);
    const missing = columns.needed.filter((name) => !names.has(name));
    const added = file.columns.filter((name) => !allowedNames.has(name));
    checks.push(['columns', missing.length > 0, `missing: ${listNames(missing)}`]);
    checks.push(['columns', added.length > 0, `new: ${listNames(added)}`]);
  }
  return checks.flatMap(([figure, isHit, message]) => (isHit ? [{ figure, message }] : []));
}

/** The guard `usual` allows these deviations from past loads. */
const rowsShare = 0.25;
const rowsLeast = 10;
const rejectedShare = 0.01;

function usualOf(past: readonly FileFigures[], fileRows: number): Expected {
  const rows = past.map((each) => each.rows);
  const min = Math.min(...rows);
  const max = Math.max(...rows);
  const slack = (count: number): number => Math.max(Math.ceil(count * rowsShare), rowsLeast);
  const rejected = Math.max(...past.map((each) => each.rejected / Math.max(each.rows, 1))) + rejectedShare;
  const tables = past.flatMap(({ columns }) => (columns === null ? [] : [columns]));
  const names = [...new Set(tables.flat())];
  const needed = names.filter((name) => tables.every((columns) => columns.includes(name)));
  return {
    rows: [Math.max(min - slack(min), 0), max + slack(max)],
    rejected: Math.floor(rejected * fileRows),
    columns: tables.length < past.length ? null : { needed, allowed: names },
  };
}

function expectedBy(figures: Exclude<VolumeGuard, 'usual'>, fileRows: number): Expected {
  const { rows, max_rejected, columns } = figures;
  const [, min = 0, max = Infinity] = rangePattern.exec(rows ?? '..') ?? [];
  return {
    rows: [Number(min), Number(max)],
    rejected: allowed(readLimit(max_rejected), fileRows) ?? Infinity,
    columns: columns === undefined ? null : { needed: columns, allowed: columns },
  };
}

function describeRange([min, max]: Expected['rows']): string {
  if (max === Infinity) return `at least ${formatCount(min)}`;
  return min === 0 ? `at most ${formatCount(max)}` : `${formatCount(min)} to ${formatCount(max)}`;
}

function listNames(names: readonly string[]): string {
  const more = names.length - MAX_SHOWN_COLUMNS;
  const shown = names.slice(0, MAX_SHOWN_COLUMNS).map(keepableText).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}
