/*
 * Reads pages of users and companies, in the order of their ids. A look-up that an index supports
 * takes one statement. A search reads one range of ids after another, until the page is full or the
 * time limit is reached. The cursor is the last id searched. Measurements:
 * docs/decisions/reading.md.
 */

import type { Expression, SqlBool } from 'kysely';
import { inputError } from '../base/errors.ts';
import { MAX_NUMBER_EXPONENT, MAX_PAGE_BYTES, MAX_PROPERTY_NAME_CHARS } from '../base/limits.ts';
import { nextOf } from '../base/pages.ts';
import { textProblem } from '../base/validation.ts';
import type { Entity } from '../domain/entity.ts';
import { findSegmentItem } from '../lookups/segment-store.ts';
import { compileSegment } from '../lookups/segments/compile-segment.ts';
import { readSegment } from '../lookups/segments/read-segment.ts';
import type { Segment } from '../lookups/segments/segment.ts';
import type { Database } from '../postgres/database.ts';
import type { Reader } from '../postgres/pool.ts';
import {
  findRangeEnd,
  holdsOneOf,
  isCalled,
  isOfCompany,
  isWrittenBy,
  type KeyRange,
  profileAlias,
  type ReadProfile,
  readProfiles,
} from './store.ts';

/** Time limit for a page of a search that no index supports. */
const SEARCH_BUDGET_MS = 250;

/**
 * The first statement of a search reads this number of profiles. Later statements read as many as
 * can be read in `searchStatementMs`.
 */
const firstSearchedRows = 2_000;
const maxSearchedRows = 100_000;
const searchStatementMs = 50;

export interface ProfileFilter {
  readonly properties: readonly PropertyFilter[];
  readonly idPrefix?: string | null;
  /** Part of the id, the name or the e-mail address. */
  readonly search?: string | null;
  readonly companyId: string | null;
  /** Job whose load wrote the profile last. */
  readonly jobId?: string | null;
  readonly segment: Segment | null;
}

interface PageRequest {
  readonly limit: number;
  readonly after: string | null;
  readonly budgetMs?: number;
}

interface ProfilePage {
  readonly profiles: readonly ReadProfile[];
  /** The next page starts after this id. `null` on the last page. */
  readonly next: string | null;
}

/** @throws PostgreSQL's error 57014 if a statement exceeds the time limit of the reader */
export function listProfiles(
  { reader }: { readonly reader: Reader },
  entity: Entity,
  environmentId: number,
  filter: ProfileFilter,
  page: PageRequest,
): Promise<ProfilePage> {
  const { properties, companyId, jobId = null, search = null, segment, idPrefix: prefix = null } = filter;
  const scope = { environmentId, now: new Date(), user: profileAlias };
  const conditions = (ids: KeyRange) => [
    ...(companyId === null ? [] : [isOfCompany(companyId)]),
    ...(search === null ? [] : [isCalled(entity, search)]),
    ...(jobId === null ? [] : [isWrittenBy(environmentId, jobId)]),
    ...properties.map(({ objects }) => holdsOneOf(objects)),
    ...(segment === null ? [] : [compileSegment(segment, { ...scope, ids })]),
  ];
  const source = { reader, entity, environmentId, prefix, conditions };
  const isSearch = properties.length > 0 || [segment, jobId, search].some((each) => each !== null);
  const byIndex = companyId !== null || !isSearch;
  return byIndex ? readPage(source, page) : searchPage(source, page);
}

interface Source {
  readonly reader: Reader;
  readonly entity: Entity;
  readonly environmentId: number;
  readonly prefix: string | null;
  readonly conditions: (ids: KeyRange) => readonly Expression<SqlBool>[];
}

async function readPage(
  { reader, entity, environmentId, prefix, conditions }: Source,
  { limit, after }: PageRequest,
): Promise<ProfilePage> {
  const range = { after, upTo: null, prefix };
  const where = conditions(range);
  const read = () =>
    readProfiles(reader.db, entity, environmentId, where, range, { rows: limit, bytes: MAX_PAGE_BYTES });
  const { profiles, more } = where.length === 0 ? await read() : await reader.inTurn(read);
  return { profiles, next: nextOf(profiles, more, ({ key }) => key) };
}

async function searchPage(
  source: Source,
  { limit, after, budgetMs = SEARCH_BUDGET_MS }: PageRequest,
): Promise<ProfilePage> {
  const { reader, entity, environmentId, prefix, conditions } = source;
  const matches: ReadProfile[] = [];
  let from = after;
  let rows = firstSearchedRows;
  let bytes = 0;
  const until = performance.now() + budgetMs;
  while (true) {
    const size = { rows: limit - matches.length, bytes: MAX_PAGE_BYTES - bytes };
    const { upTo, profiles, more, tookMs } = await reader.inTurn(async () => {
      const startedAt = performance.now();
      const upTo = await findRangeEnd(reader.db, entity, environmentId, from, rows, prefix);
      const range = { after: from, upTo, prefix };
      const page = await readProfiles(reader.db, entity, environmentId, conditions(range), range, size);
      return { upTo, ...page, tookMs: performance.now() - startedAt };
    });
    matches.push(...profiles);
    if (more) return { profiles: matches, next: nextOf(matches, true, ({ key }) => key) };
    if (upTo === null) return { profiles: matches, next: null };
    bytes += profiles.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0);
    const isOver = matches.length === limit || bytes >= MAX_PAGE_BYTES || performance.now() + tookMs > until;
    if (isOver) return { profiles: matches, next: upTo };
    from = upTo;
    rows = nextRows(rows, tookMs);
  }
}

function nextRows(rows: number, tookMs: number): number {
  const factor = Math.min(4, searchStatementMs / Math.max(1, tookMs));
  return Math.max(firstSearchedRows, Math.min(maxSearchedRows, Math.round(rows * factor)));
}

/** @throws InputError `unknown_segment`, including when a newer version stored the definition */
export async function requireSegment(db: Database, environmentId: number, id: number): Promise<Segment> {
  const item = await findSegmentItem(db, environmentId, { segmentId: id });
  const segment = item && readSegment(item.definition).segment;
  if (segment !== null) return segment;
  const message =
    item === null
      ? 'There is no such segment; the lookup of segments lists those there are'
      : 'The definition of this segment cannot be read; apply the definitions again';
  throw inputError('unknown_segment', message, 'segment_id');
}

const maxComparedValueChars = 1_024;

/** `size:120` matches the number and the string, `size:"120"` only the string. */
export interface PropertyFilter {
  readonly objects: readonly string[];
}

const bytesPerChar = 4;
const quoted = /^"(?:[^"\\]|\\.)*"/;
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE]([+-]?\d{1,9}))?$/;

export function propertyProblem(text: string): string | null {
  const parts = split(text);
  if (parts === null) return 'property is name:value, such as plan:pro; a name with a colon stands in quotes';
  const name = textProblem(parts.name, MAX_PROPERTY_NAME_CHARS * bytesPerChar);
  if (name !== null) return `The name in property ${name}`;
  if (parts.name.length > MAX_PROPERTY_NAME_CHARS) {
    return `The name in property is longer than ${MAX_PROPERTY_NAME_CHARS} characters`;
  }
  const value = parts.value === '' ? null : textProblem(parts.value, maxComparedValueChars * bytesPerChar);
  if (value !== null) return `The value in property ${value}`;
  return null;
}

export function readPropertyFilter(text: string): PropertyFilter {
  const { name, value, isString } = split(text) ?? { name: text, value: '', isString: true };
  const values = [JSON.stringify(value), ...(isString ? [] : unquoted(value))];
  return { objects: values.map((json) => `{${JSON.stringify(name)}:${json}}`) };
}

/** Returns the value if it is a boolean or a number in JSON. Keeps all digits of a number. */
function unquoted(value: string): string[] {
  if (value === 'true' || value === 'false') return [value];
  const match = number.exec(value);
  return match !== null && Math.abs(Number(match[1] ?? 0)) <= MAX_NUMBER_EXPONENT ? [value] : [];
}

interface Split {
  readonly name: string;
  readonly value: string;
  readonly isString: boolean;
}

function split(text: string): Split | null {
  const [literal] = quoted.exec(text) ?? [];
  const inQuotes = literal === undefined ? null : parseString(literal);
  const at = literal === undefined || inQuotes === null ? text.indexOf(':') : literal.length;
  if (at < 0 || text[at] !== ':') return null;
  const value = text.slice(at + 1);
  const string = quoted.exec(value)?.[0] === value ? parseString(value) : null;
  return { name: inQuotes ?? text.slice(0, at), value: string ?? value, isString: string !== null };
}

function parseString(literal: string): string | null {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return null;
  }
}
