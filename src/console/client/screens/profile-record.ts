/* Users and companies as the API has them, and what both screens call them. */

import { api, withQuery } from '../lib/api.ts';

export type Entity = 'users' | 'companies';

export interface Profile {
  readonly user_id?: string;
  readonly company_id: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly updated_at: string;
}

export interface Activity {
  readonly events: number;
  readonly is_complete: boolean;
  readonly first_event_at: string | null;
  readonly last_event_at: string | null;
  readonly days: readonly { readonly day: string; readonly events: number }[];
  readonly event_names: readonly {
    readonly event_name: string;
    readonly events: number;
    readonly last_at: string;
  }[];
  readonly users: number | null;
  readonly archived_until: string | null;
}

export interface StoredEvent {
  readonly event_id: string;
  readonly event_name: string;
  readonly inserted_at: string;
  readonly source: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface DeletionPreview {
  readonly requested: number;
  readonly profiles: number;
  readonly not_found: number;
  readonly events: number;
  readonly users: number;
  readonly is_complete: boolean;
  readonly archived_until: string | null;
}

export interface SegmentItem {
  readonly id: number;
  readonly title: string;
  readonly usage: string;
  readonly category: string;
  readonly is_hidden: boolean;
  readonly is_protected: boolean;
  readonly status: string;
}

/** The lookup that comes in pages; a page is as long as it may be. */
export function segmentsPath(cursor: string): string {
  return withQuery('/api/v1/analytics/exports/lookups/segments', { limit: 200, after_cursor: cursor });
}

export interface SegmentPage {
  readonly data: readonly SegmentItem[];
  readonly metadata: { readonly cursor: { readonly after: string }; readonly total_count: number };
}

/** More are not offered for choice, and `isCut` says so. */
const mostPages = 50;

/** All segments, for a choice among them. */
export async function loadSegments(
  signal: AbortSignal,
): Promise<{ readonly data: readonly SegmentItem[]; readonly isCut: boolean }> {
  const data: SegmentItem[] = [];
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
  /** Of the screen, below /console. */
  readonly screen: string;
  readonly properties: string;
  /** Of the form of exports. */
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

export function profileScreen(entity: Entity, id: string): string {
  return `${words[entity].screen}/${encodeURIComponent(id)}`;
}

/** A value as a person reads it: texts as they are, the rest as JSON. */
export function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
