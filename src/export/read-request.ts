import type { Static } from 'typebox';
import type { Problem } from '../base/errors.ts';
import { type RangeEnd, readRangeEnd } from '../base/instant.ts';
import { MAX_ID_BYTES, MAX_REQUEST_PROBLEMS } from '../base/limits.ts';
import { findMeant } from '../base/nearest.ts';
import { compileSchema, textProblem } from '../base/validation.ts';
import {
  type Exclusion,
  type ExportLayout,
  type ExportRequest,
  type ExportWarning,
  exclusionKinds,
  exportFormatFacts,
  selectEvents,
} from '../domain/export.ts';
import { exportRequest, notASegmentId } from './request-schema.ts';

export const MAX_EXCLUSIONS = 1_000;
/** Exclusions with a wildcard: each is compared with every row and name, at the cost of the product of the two lengths. */
export const MAX_EXCLUSION_PATTERNS = 100;

/* The request of an export: what its body asks for, and the checks that its schema cannot express. */

const findProblems = compileSchema(exportRequest);

/** A request as far as it can be read without looking anything up. */
export interface ReadRequest {
  readonly request: ExportRequest;
  readonly emails: readonly string[];
  /** The types as given; names among them are to be looked up. */
  readonly eventTypes: readonly string[];
  readonly warnings: readonly ExportWarning[];
  /** Nobody is to use the request unless there are none. */
  readonly problems: Problem[];
}

export const noSuchSegment =
  'There is no such segment; the lookup of segments lists those there are, and `sluice definitions apply FILE` makes them: docs/definitions.md';

/** Reads what an export is asked for, and finds everything that is wrong with it. */
export function readRequest(
  body: Readonly<Record<string, unknown>>,
  usual: ExportLayout = 'datasets',
): ReadRequest {
  const given = plain(body);
  const problems = findProblems(given);
  const fields = withoutWrong(given, problems);
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
    segmentId: readSegmentId(fields.segment_id, problems),
    exclusions: readExclusions(fields.exclusions ?? '', problems),
    format,
    compression,
    escapeFormulas: fields.escape_formulas ?? true,
  };
  problems.push(...findUntold(request));
  const emails = distinct(fields.emails);
  const warnings = findIgnored(given, problems);
  return { request, emails, eventTypes, warnings, problems: problems.slice(0, MAX_REQUEST_PROBLEMS) };
}

/** Names of fields that are none of ours, as far as anybody reads them. One that looks like a misspelt field is a problem. */
function findIgnored(given: Readonly<Record<string, unknown>>, problems: Problem[]): ExportWarning[] {
  const fields = Object.keys(exportRequest.properties);
  const others = Object.keys(given).filter((name) => !fields.includes(name));
  const unknown = others.filter((name) => {
    const meant = findMeant(name, fields);
    if (meant !== undefined)
      problems.push(wrong(`There is no such field; did you mean ${meant}?`, printable(name)));
    return meant === undefined;
  });
  return unknown
    .slice(0, MAX_REQUEST_PROBLEMS)
    .map((name) => ({ message: 'There is no such field; it was ignored', details: printable(name) }));
}

/** Postgres takes no U+0000. */
function printable(name: string): string {
  return shorten(name.replaceAll('\0', '\ufffd'));
}

const lists = ['emails', 'event_type', 'user_id', 'company_id'] as const;
type Lists = { readonly [name in (typeof lists)[number]]?: readonly string[] };
type Fields = Omit<Static<typeof exportRequest>, keyof Lists> & Lists;

/** Other names of fields. One that is given beside the field itself is ignored. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['event_types', 'event_type'],
  ['start_date', 'from'],
  ['end_date', 'to'],
]);

/** Lists as lists, and numbers in them as their digits, as in bulk data; what says nothing is left out. */
function plain(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = Object.entries(body).filter(
    ([name, value]) => value !== null && value !== undefined && (value !== '' || name === 'escape_formulas'),
  );
  return Object.fromEntries(
    given.map(([own, value]) => {
      const other = otherNames.get(own);
      const name = other !== undefined && (body[other] ?? '') === '' ? other : own;
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

/** The fields that are right, to find out what else is wrong; none of a body that is wrong all over. */
function withoutWrong(given: Readonly<Record<string, unknown>>, problems: readonly Problem[]): Fields {
  if (problems.length >= MAX_REQUEST_PROBLEMS) return {};
  const places = new Set(problems.map(({ details }) => details));
  const right = Object.entries(given).filter(([name]) => !places.has(name));
  return Object.fromEntries(
    right.map(([name, value]) => [
      name,
      Array.isArray(value) ? value.filter((_, index) => !places.has(`${name}[${index}]`)) : value,
    ]),
  );
}

function distinct(texts: readonly string[] = []): string[] {
  return [...new Set(texts)];
}

function readSegmentId(value: string | number | undefined, problems: Problem[]): number | null {
  if (value === undefined) return null;
  const id = isText(value) && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof id === 'number' && Number.isSafeInteger(id)) return id;
  problems.push(
    isText(value)
      ? { code: 'unknown_segment', message: noSuchSegment, details: 'segment_id' }
      : wrong(notASegmentId, 'segment_id'),
  );
  return null;
}

/** `from` included, `to` excluded. */
interface Range {
  readonly from: string | null;
  readonly to: string | null;
}

/** Both ends: a whole day of UTC each, or an instant. Without `to` there is no end. */
function readRange(from: string | undefined, to: string | undefined, now: Date, problems: Problem[]): Range {
  const [begin, end] = [readRangeEnd(from), readRangeEnd(to)];
  const until = end?.after ?? now.toISOString().replace('Z', '000Z');
  if (begin !== null && isReversed(begin, end, until)) {
    const message = 'from lies after to, or after this moment where there is no to';
    problems.push({ code: 'invalid_range', message, details: 'from' });
  }
  return { from: begin?.start ?? null, to: end?.after ?? null };
}

function isReversed(begin: RangeEnd, end: RangeEnd | null, until: string): boolean {
  if (begin.start < until) return false;
  // Two equal instants hold nothing between them, but are in order; a day never equals the end of another.
  return !(end !== null && !end.isDay && begin.start === until);
}

/** Finds what does not go with removals: a profile that leaves a filter is not removed, and stays in the copy. */
function findUntold({ includeRemoved, from, to, ...request }: ExportRequest): Problem[] {
  if (!includeRemoved) return [];
  const { userIds, companyIds, segmentId, exclusions, format, layout } = request;
  const filters = {
    from: from !== null,
    to: to !== null,
    user_id: userIds.length > 0,
    company_id: companyIds.length > 0,
    segment_id: segmentId !== null,
    exclusions: exclusions.some(({ kind }) => kind === 'company' || kind === 'segment'),
    format: format === 'csv',
    layout: layout !== 'datasets',
  };
  return Object.entries(filters)
    .filter(([, isGiven]) => isGiven)
    .map(([name]) =>
      wrong(`include_removed cannot tell all that was removed with this ${name}; leave one out`, name),
    );
}

/** `user:ID, event:KEY, segment:ID`: reads every term, and notes those that are none. */
function readExclusions(text: string, problems: Problem[]): Exclusion[] {
  const given = text
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '');
  if (given.length > MAX_EXCLUSIONS) {
    problems.push(wrong(`exclusions may have ${MAX_EXCLUSIONS} terms`, 'exclusions'));
    return [];
  }
  if (given.filter((term) => term.includes('*')).length > MAX_EXCLUSION_PATTERNS) {
    problems.push(wrong(`exclusions may have ${MAX_EXCLUSION_PATTERNS} terms with a *`, 'exclusions'));
    return [];
  }
  return given.flatMap((term) => readTerm(term, problems) ?? []);
}

/** An id may hold colons: the first one divides. */
function readTerm(term: string, problems: Problem[]): Exclusion | null {
  const [, name = term, given = ''] = /^([^:]*):(.*)$/s.exec(term) ?? [];
  const kind = exclusionKinds.find((each) => each === name.trim());
  const pattern = given.trim();
  const problem = termProblem(kind, pattern);
  if (problem !== null) problems.push(wrong(problem, `exclusions: ${shorten(term)}`));
  return kind === undefined || problem !== null ? null : { kind, pattern: pattern.replace(/\*+/g, '*') };
}

function termProblem(kind: Exclusion['kind'] | undefined, pattern: string): string | null {
  if (kind === undefined) {
    return `A term of exclusions is one of ${exclusionKinds.map((each) => `${each}:…`).join(', ')}`;
  }
  // A pattern is as long as what it is to match, with room for a star at both ends.
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
