import type { Static } from 'typebox';
import type { Problem } from '../base/errors.ts';
import { type RangeEnd, readRangeEnd } from '../base/instant.ts';
import { MAX_ID_BYTES, MAX_REQUEST_PROBLEMS } from '../base/limits.ts';
import { findMeant } from '../base/nearest.ts';
import { textProblem } from '../base/validation.ts';
import {
  type Exclusion,
  type ExportLayout,
  type ExportRequest,
  type ExportWarning,
  exclusionKinds,
  exportFormatFacts,
  selectEvents,
} from '../domain/export.ts';
import type { ExportOptions } from './options.ts';

export const MAX_EXCLUSIONS = 1_000;
/**
 * Maximum number of patterns. Each pattern is compared with every row and name. The time of one
 * comparison can grow with the length of the pattern times the length of the text.
 */
export const MAX_EXCLUSION_PATTERNS = 100;

export interface ReadRequest {
  readonly request: ExportRequest;
  readonly emails: readonly string[];
  /** The caller checks whether the environment has these event types. */
  readonly eventTypes: readonly string[];
  readonly warnings: readonly ExportWarning[];
  readonly problems: Problem[];
}

export function readRequest(
  options: ExportOptions,
  body: Readonly<Record<string, unknown>>,
  usual: ExportLayout = 'datasets',
): ReadRequest {
  const normalized = normalize(body);
  const problems = options.findProblems(normalized);
  const fields = withoutWrong(normalized, problems);
  const eventTypes = distinct(fields.event_type);
  const format = fields.format === 'json' ? 'ndjson' : (fields.format ?? 'ndjson');
  const { isPackedInside } = exportFormatFacts[format];
  const { compression = isPackedInside ? 'none' : 'gzip' } = fields;
  const { include_removed: includeRemoved = false } = fields;
  const { layout = includeRemoved ? 'datasets' : usual } = fields;
  if (isPackedInside && compression === 'gzip') {
    problems.push(wrong(`Files of ${format} are compressed inside; leave compression out`, 'compression'));
  }
  const request: ExportRequest = {
    ...readRange(fields.from, fields.to, new Date(), problems),
    since: fields.since ?? null,
    includeRemoved,
    waitForLoads: fields.wait_for_loads ?? false,
    layout,
    ...selectEvents(eventTypes),
    userIds: distinct(fields.user_id),
    companyIds: distinct(fields.company_id),
    options: options.read(fields, problems),
    exclusions: readExclusions(fields.exclusions ?? '', problems),
    format,
    compression,
    escapeFormulas: fields.escape_formulas ?? true,
  };
  problems.push(...findUnsupportedFilters(request));
  const emails = distinct(fields.emails);
  const warnings = findIgnored(Object.keys(options.schema.properties), normalized, problems);
  return { request, emails, eventTypes, warnings, problems: problems.slice(0, MAX_REQUEST_PROBLEMS) };
}

/** An unknown field is a warning or, if its name resembles a known field, a problem. */
function findIgnored(
  fields: readonly string[],
  normalized: Readonly<Record<string, unknown>>,
  problems: Problem[],
): ExportWarning[] {
  const others = Object.keys(normalized).filter((name) => !fields.includes(name));
  const unknown = others.filter((name) => {
    const likely = findMeant(name, fields);
    if (likely !== undefined)
      problems.push(wrong(`There is no such field; did you mean ${likely}?`, printable(name)));
    return likely === undefined;
  });
  return unknown
    .slice(0, MAX_REQUEST_PROBLEMS)
    .map((name) => ({ message: 'There is no such field; it was ignored', details: printable(name) }));
}

/** PostgreSQL rejects U+0000. */
function printable(name: string): string {
  return shorten(name.replaceAll('\0', '\ufffd'));
}

const lists = ['emails', 'event_type', 'user_id', 'company_id'] as const;
type Lists = { readonly [name in (typeof lists)[number]]?: readonly string[] };
type Fields = Omit<Static<ExportOptions['schema']>, keyof Lists> & Lists;

/** Names of fields by their aliases. If a request contains both, the field wins over its alias. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['event_types', 'event_type'],
  ['start_date', 'from'],
  ['end_date', 'to'],
]);

/**
 * Converts a body to the usual form. Empty values are dropped. Numbers in lists become strings, as
 * in bulk data.
 */
function normalize(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const filled = Object.entries(body).filter(
    ([name, value]) => value !== null && value !== undefined && (value !== '' || name === 'escape_formulas'),
  );
  return Object.fromEntries(
    filled.map(([fieldName, value]) => {
      const other = otherNames.get(fieldName);
      const name = other !== undefined && (body[other] ?? '') === '' ? other : fieldName;
      if (lists.some((each) => each === name)) return [name, [value].flat().map(digits)];
      const isTerms = name === 'exclusions' && Array.isArray(value) && value.every(isText);
      return [name, isTerms ? value.join(',') : value];
    }),
  );
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function digits(item: unknown): unknown {
  return typeof item === 'number' && Number.isSafeInteger(item) ? String(item) : item;
}

/**
 * Returns the fields and list items that have no problem, for further checks. Returns none if the
 * maximum number of problems is reached.
 */
function withoutWrong(normalized: Readonly<Record<string, unknown>>, problems: readonly Problem[]): Fields {
  if (problems.length >= MAX_REQUEST_PROBLEMS) return {};
  const places = new Set(problems.map(({ details }) => details));
  const valid = Object.entries(normalized).filter(([name]) => !places.has(name));
  return Object.fromEntries(
    valid.map(([name, value]) => [
      name,
      Array.isArray(value) ? value.filter((_, index) => !places.has(`${name}[${index}]`)) : value,
    ]),
  );
}

function distinct(texts: readonly string[] = []): string[] {
  return [...new Set(texts)];
}

/** `from` is inclusive and `to` is exclusive. `null` means an open end. */
interface Range {
  readonly from: string | null;
  readonly to: string | null;
}

function readRange(from: string | undefined, to: string | undefined, now: Date, problems: Problem[]): Range {
  const begin = readRangeEnd(from);
  const end = readRangeEnd(to);
  const until = end?.after ?? now.toISOString().replace('Z', '000Z');
  if (begin !== null && isReversed(begin, end, until)) {
    const message = 'from is after to, or after this moment where there is no to';
    problems.push({ code: 'invalid_range', message, details: 'from' });
  }
  return { from: begin?.start ?? null, to: end?.after ?? null };
}

function isReversed(begin: RangeEnd, end: RangeEnd | null, until: string): boolean {
  if (begin.start < until) return false;
  // A range whose ends are equal instants is empty but valid.
  return !(end !== null && !end.isDay && begin.start === until);
}

/**
 * `includeRemoved` does not support filters. A profile that stops matching a filter would remain in
 * the caller's copy.
 */
function findUnsupportedFilters({ includeRemoved, from, to, ...request }: ExportRequest): Problem[] {
  if (!includeRemoved) return [];
  const { userIds, companyIds, options, exclusions, format, layout } = request;
  const filters = {
    from: from !== null,
    to: to !== null,
    user_id: userIds.length > 0,
    company_id: companyIds.length > 0,
    ...Object.fromEntries(Object.keys(options).map((name) => [name, true])),
    exclusions: exclusions.some(({ kind }) => kind === 'company' || kind === 'segment'),
    format: !exportFormatFacts[format].isLossless,
    layout: layout !== 'datasets',
  };
  return Object.entries(filters)
    .filter(([, isGiven]) => isGiven)
    .map(([name]) =>
      wrong(`include_removed cannot tell all that was removed with this ${name}; leave one out`, name),
    );
}

/** Reads terms such as `user:ID, event:KEY, segment:ID`. */
function readExclusions(text: string, problems: Problem[]): Exclusion[] {
  const terms = text
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '');
  if (terms.length > MAX_EXCLUSIONS) {
    problems.push(wrong(`exclusions may have ${MAX_EXCLUSIONS} terms`, 'exclusions'));
    return [];
  }
  if (terms.filter((term) => term.includes('*')).length > MAX_EXCLUSION_PATTERNS) {
    problems.push(wrong(`exclusions may have ${MAX_EXCLUSION_PATTERNS} terms with a *`, 'exclusions'));
    return [];
  }
  return terms.flatMap((term) => readTerm(term, problems) ?? []);
}

/** The id after the first colon may contain further colons. */
function readTerm(term: string, problems: Problem[]): Exclusion | null {
  const [, name = term, value = ''] = /^([^:]*):(.*)$/s.exec(term) ?? [];
  const kind = exclusionKinds.find((each) => each === name.trim());
  const pattern = value.trim();
  const problem = termProblem(kind, pattern);
  if (problem !== null) problems.push(wrong(problem, `exclusions: ${shorten(term)}`));
  return kind === undefined || problem !== null ? null : { kind, pattern: pattern.replace(/\*+/g, '*') };
}

function termProblem(kind: Exclusion['kind'] | undefined, pattern: string): string | null {
  if (kind === undefined) {
    return `A term of exclusions is one of ${exclusionKinds.map((each) => `${each}:…`).join(', ')}`;
  }
  // Two more bytes allow a `*` at each end.
  const reason = textProblem(pattern, MAX_ID_BYTES + 2);
  if (reason !== null) return `What follows ${kind}: ${reason}`;
  const isNoId = kind === 'segment' && !/^[\d*]+$/.test(pattern);
  return isNoId ? 'A segment is named by its id, from the lookup of segments' : null;
}

function shorten(text: string): string {
  return text.length > 100 ? `${text.slice(0, 99).toWellFormed()}…` : text.toWellFormed();
}

function wrong(message: string, details: string): Problem {
  return { code: 'invalid_field', message, details };
}
