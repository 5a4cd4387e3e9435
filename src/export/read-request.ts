import type { Problem } from '../domain/errors.ts';
import { compressions, type ExportRequest, exportFormats } from '../domain/export.ts';
import {
  MAX_EVENT_NAME_BYTES,
  MAX_EXPORT_EMAILS,
  MAX_EXPORT_VALUES,
  MAX_ID_BYTES,
} from '../domain/limits.ts';
import { isMailAddress } from '../domain/mail-address.ts';
import { readRange } from './range.ts';
import { readExclusions } from './read-exclusions.ts';
import { selectEvents } from './select-events.ts';
import { textProblem } from './text-problem.ts';

/** A request as far as it can be read without looking anything up. */
export interface ReadRequest {
  readonly request: ExportRequest;
  readonly emails: readonly string[];
  /** As they were given: the names among them are to be looked up. */
  readonly eventTypes: readonly string[];
  /** Nobody is to use the request unless there are none. */
  readonly problems: Problem[];
}

const fields: ReadonlySet<string> = new Set([
  ...['from', 'to', 'emails', 'event_type', 'user_id', 'company_id', 'segment_id', 'exclusions'],
  ...['format', 'compression', 'escape_formulas'],
]);

export const noSuchSegment =
  'There is no such segment; the lookup of segments lists those there are, and `sluice definitions apply FILE` makes them: docs/definitions.md';

/** Of a body that is wrong all over nobody reads more. */
const maxProblems = 100;

/** Reads what an export is asked for, and finds everything that is wrong with it. */
export function readRequest(body: Readonly<Record<string, unknown>>, now = new Date()): ReadRequest {
  const problems: Problem[] = [];
  for (const name of Object.keys(body)) {
    if (!fields.has(name)) refuse(problems, 'There is no such field', name.slice(0, 100).toWellFormed());
  }
  const eventTypes = readTexts(body['event_type'], 'event_type', MAX_EVENT_NAME_BYTES, problems);
  const format = readChoice(body['format'], 'format', exportFormats, problems);
  const request: ExportRequest = {
    ...readRange(body['from'], body['to'], now, problems),
    ...selectEvents(eventTypes),
    userIds: readTexts(body['user_id'], 'user_id', MAX_ID_BYTES, problems),
    companyIds: readTexts(body['company_id'], 'company_id', MAX_ID_BYTES, problems),
    segmentId: readSegmentId(body['segment_id'], problems),
    exclusions: readExclusions(body['exclusions'], problems),
    format: format ?? 'ndjson',
    compression: readCompression(body['compression'], format === 'parquet', problems),
    escapeFormulas: readFlag(body['escape_formulas'], true, problems),
  };
  const emails = readEmails(body['emails'], problems);
  return { request, emails, eventTypes, problems: problems.slice(0, maxProblems) };
}

/** A list of texts; one alone stands for a list of it, and a number for its digits, as in bulk data. */
function readTexts(value: unknown, name: string, maxBytes: number, problems: Problem[]): string[] {
  const given = value === undefined || value === null || value === '' ? [] : [value].flat();
  if (given.length > MAX_EXPORT_VALUES) {
    refuse(problems, `${name} may list ${MAX_EXPORT_VALUES} values`, name);
    return [];
  }
  const texts = given.flatMap((item, index) => {
    const text = typeof item === 'number' && Number.isSafeInteger(item) ? String(item) : item;
    const wrong = typeof text === 'string' ? textProblem(text, maxBytes) : 'is no string';
    if (wrong === null) return [text as string];
    // Not to be looked up: Postgres takes no such text.
    refuse(problems, `A value of ${name} ${wrong}`, `${name}[${index}]`);
    return [];
  });
  return [...new Set(texts)];
}

function readEmails(value: unknown, problems: Problem[]): string[] {
  const given = value === undefined || value === null || value === '' ? [] : [value].flat();
  if (given.length > MAX_EXPORT_EMAILS) {
    refuse(problems, `emails may list ${MAX_EXPORT_EMAILS} addresses`, 'emails');
    return [];
  }
  for (const [index, item] of given.entries()) {
    if (typeof item === 'string' && isMailAddress(item)) continue;
    refuse(problems, 'Each of emails is one plain address such as ada@example.com', `emails[${index}]`);
  }
  return [...new Set(given.filter((item) => typeof item === 'string'))];
}

function readSegmentId(value: unknown, problems: Problem[]): number | null {
  if (value === undefined || value === null || value === '') return null;
  const id = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof id === 'number' && Number.isSafeInteger(id)) return id;
  if (typeof value === 'string') {
    problems.push({ code: 'unknown_segment', message: noSuchSegment, details: 'segment_id' });
  } else refuse(problems, 'segment_id is a string or an integer', 'segment_id');
  return null;
}

/** Parquet packs its columns itself. */
function readCompression(value: unknown, isParquet: boolean, problems: Problem[]) {
  const compression = readChoice(value, 'compression', compressions, problems);
  if (isParquet && compression === 'gzip') {
    refuse(problems, 'Parquet files are compressed inside; leave compression out', 'compression');
  }
  return compression ?? (isParquet ? 'none' : 'gzip');
}

function readChoice<T extends string>(
  value: unknown,
  name: string,
  allowed: readonly T[],
  problems: Problem[],
): T | null {
  if (value === undefined || value === null || value === '') return null;
  const found = allowed.find((each) => each === value);
  if (found === undefined) refuse(problems, `${name} is one of ${allowed.join(', ')}`, name);
  return found ?? null;
}

function readFlag(value: unknown, fallback: boolean, problems: Problem[]): boolean {
  if (value === undefined || value === null) return fallback;
  if (typeof value === 'boolean') return value;
  refuse(problems, 'escape_formulas is true or false', 'escape_formulas');
  return fallback;
}

function refuse(problems: Problem[], message: string, details: string): void {
  problems.push({ code: 'invalid_field', message, details });
}
