/* Names and addresses that the screens of users and companies share. */

import type { Segment, SegmentPage } from '../../../../api/segment.ts';
import { screenHref, withQuery } from '../../lib/address.ts';
import { api } from '../../lib/api.ts';
import type { Profile } from '../../lib/records.ts';

export type Entity = 'users' | 'companies';

/** Returns the path of a page of segments, as long as a page may be. */
export function segmentsPath(cursor: string): string {
  return withQuery('/api/v1/analytics/exports/lookups/segments', { limit: 200, after_cursor: cursor });
}

interface SegmentChoice {
  readonly data: readonly Segment[];
  readonly isCut: boolean;
}

/** Segments beyond these pages are not offered for choice, and `isCut` says so. */
const mostPages = 50;

/** Loads all segments, for a choice among them. */
export async function loadSegments(signal: AbortSignal): Promise<SegmentChoice> {
  const data: Segment[] = [];
  let cursor = '';
  for (let page = 0; page < mostPages; page++) {
    const found = await api<SegmentPage>(segmentsPath(cursor), { signal });
    data.push(...found.data);
    cursor = found.metadata.cursor.after;
    if (cursor === '') return { data, isCut: false };
  }
  return { data, isCut: true };
}

interface Words {
  readonly one: string;
  readonly many: string;
  readonly title: string;
  /** The path of the screen, below /console. */
  readonly screen: string;
  /** The path of the lookup of properties. */
  readonly properties: string;
  /** The field of the form of exports. */
  readonly filter: 'user_id' | 'company_id';
}

export const words: Readonly<Record<Entity, Words>> = {
  users: {
    one: 'user',
    many: 'users',
    title: 'Users',
    screen: '/people',
    properties: '/api/v1/analytics/exports/lookups/user_properties',
    filter: 'user_id',
  },
  companies: {
    one: 'company',
    many: 'companies',
    title: 'Companies',
    screen: '/companies',
    properties: '/api/v1/analytics/exports/lookups/company_properties',
    filter: 'company_id',
  },
};

export function idOf(profile: Profile): string {
  return profile.user_id ?? profile.company_id ?? '';
}

export function profileHref(entity: Entity, id: string): string {
  return screenHref(`${words[entity].screen}/${encodeURIComponent(id)}`);
}

/** Returns a value as a person reads it: a text as it is, anything else as JSON. */
export function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
