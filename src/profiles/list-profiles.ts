/*
 * Reading profiles back: pages of users and companies, in the order of their ids. What an index finds is one statement. What
 * none finds, a property or a segment, is searched for in ranges of ids, each a statement that takes a moment, until the page is
 * full or its time is over: then the page is short, and its cursor says where the next one goes on. docs/decisions/reading.md
 * has the figures that no index on properties is worth.
 */
import type { Expression, SqlBool } from 'kysely';
import type { Entity } from '../domain/entity.ts';
import { MAX_PAGE_BYTES, SEARCH_BUDGET_MS } from '../domain/limits.ts';
import type { Reader } from '../postgres/pool.ts';
import {
  findRangeEnd,
  holdsOneOf,
  isOfCompany,
  type KeyRange,
  profileAlias,
  type ReadProfile,
  readProfiles,
} from '../postgres/stores/profiles.ts';
import { compileSegment } from '../segments/compile-segment.ts';
import type { Segment } from '../segments/segment.ts';
import type { PropertyFilter } from './property-filter.ts';

/** Profiles that the first statement of a search goes through. Later ones take as many as last about `searchStatementMs`. */
const firstSearchedRows = 2_000;
const maxSearchedRows = 100_000;
const searchStatementMs = 100;

export interface ProfileFilter {
  readonly properties: readonly PropertyFilter[];
  readonly idPrefix?: string | null;
  readonly companyId: string | null;
  readonly segment: Segment | null;
}

export interface PageRequest {
  readonly limit: number;
  readonly after: string | null;
  readonly budgetMs?: number;
}

export interface ProfilePage {
  readonly profiles: readonly ReadProfile[];
  /** The id after which the next page begins, which need not be one of these; null: this is the last. */
  readonly next: string | null;
}

/** @throws the database's 57014 if a statement takes longer than the reader's connections allow. */
export function listProfiles(
  reader: Reader,
  entity: Entity,
  environmentId: number,
  filter: ProfileFilter,
  page: PageRequest,
): Promise<ProfilePage> {
  const { properties, companyId, segment, idPrefix: prefix = null } = filter;
  const scope = { environmentId, now: new Date(), user: profileAlias };
  const conditions = (ids: KeyRange) => [
    ...(companyId === null ? [] : [isOfCompany(companyId)]),
    ...properties.map(({ objects }) => holdsOneOf(objects)),
    ...(segment === null ? [] : [compileSegment(segment, { ...scope, ids })]),
  ];
  const source = { reader, entity, environmentId, prefix, conditions };
  const byIndex = companyId !== null || (properties.length === 0 && segment === null);
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
  const asked = conditions(range);
  const read = () =>
    readProfiles(reader.db, entity, environmentId, asked, range, { rows: limit, bytes: MAX_PAGE_BYTES });
  const { profiles, more } = asked.length === 0 ? await read() : await reader.inTurn(read);
  return { profiles, next: more ? (profiles.at(-1)?.key ?? null) : null };
}

async function searchPage(
  source: Source,
  { limit, after, budgetMs = SEARCH_BUDGET_MS }: PageRequest,
): Promise<ProfilePage> {
  const { reader, entity, environmentId, prefix, conditions } = source;
  const found: ReadProfile[] = [];
  let [from, rows, bytes] = [after, firstSearchedRows, 0];
  const until = performance.now() + budgetMs;
  for (;;) {
    const size = { rows: limit - found.length, bytes: MAX_PAGE_BYTES - bytes };
    const { upTo, profiles, more, tookMs } = await reader.inTurn(async () => {
      const begun = performance.now();
      const upTo = await findRangeEnd(reader.db, entity, environmentId, from, rows, prefix);
      const range = { after: from, upTo, prefix };
      const read = await readProfiles(reader.db, entity, environmentId, conditions(range), range, size);
      return { upTo, ...read, tookMs: performance.now() - begun };
    });
    found.push(...profiles);
    if (more) return { profiles: found, next: found.at(-1)?.key ?? null };
    if (upTo === null) return { profiles: found, next: null };
    bytes += profiles.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0);
    const isOver = found.length === limit || bytes >= MAX_PAGE_BYTES || performance.now() > until;
    if (isOver) return { profiles: found, next: upTo };
    from = upTo;
    rows = nextRows(rows, tookMs);
  }
}

function nextRows(rows: number, tookMs: number): number {
  const factor = Math.min(4, searchStatementMs / Math.max(1, tookMs));
  return Math.max(firstSearchedRows, Math.min(maxSearchedRows, Math.round(rows * factor)));
}
