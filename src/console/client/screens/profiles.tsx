import type { VNode } from 'preact';
import type { Segment, SegmentPage } from '../../../api/definition.ts';
import { api, screenHref, useApiPage, useData, useQuery, withQuery } from '../lib/api.ts';
import { shorten, valueText, visibleText } from '../lib/format.ts';
import type { Profile } from '../lib/jobs.ts';
import { FilterSelect, FilterText } from '../ui/controls.tsx';
import { Empty, JobLink, Page, Problems, Time } from '../ui/page.tsx';
import { ClearFilters, type Column, List } from '../ui/table.tsx';

export type Entity = 'users' | 'companies';

/** One profile. */
export interface Who {
  readonly entity: Entity;
  readonly id: string;
}

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

/** The words for users and companies, and the places of their screens and properties. */
export const words = {
  users: {
    one: 'user',
    title: 'Users',
    screen: '/people',
    properties: '/api/v1/analytics/exports/lookups/user_properties',
    filter: 'user_id',
  },
  companies: {
    one: 'company',
    title: 'Companies',
    screen: '/companies',
    properties: '/api/v1/analytics/exports/lookups/company_properties',
    filter: 'company_id',
  },
} as const;

export function profileHref(entity: Entity, id: string): string {
  return screenHref(`${words[entity].screen}/${encodeURIComponent(id)}`);
}

/** Users, by id; looked up by the beginning of an id, a property, a company, a segment. */
export function Users(): VNode {
  return <Profiles entity="users" />;
}

export function Companies(): VNode {
  return <Profiles entity="companies" />;
}

const filters = ['id_prefix', 'property', 'company_id', 'segment_id', 'job_id'] as const;

function Profiles({ entity }: { readonly entity: Entity }): VNode {
  const query = useQuery();
  const { title, one } = words[entity];
  const given = query.given(filters);
  const isFiltered = Object.keys(given).length > 0;
  const path = withQuery(`/v1/${entity}`, { ...given, cursor: query.get('cursor') });
  const list = useApiPage<Profile>(path);
  const idOf = ({ user_id, company_id }: Profile): string => user_id ?? company_id ?? '';
  const none = isFiltered ? (
    <Empty title={`No ${one} matches`}>Ids and values must match exactly.</Empty>
  ) : (
    <Empty title={`There are no ${entity} yet`}>
      <a href={screenHref('/load')}>Load a file</a>
    </Empty>
  );
  const noneYet = (
    <Empty title={`No ${one} among those that were searched so far`}>
      Properties have no index: profiles are searched in the order of their ids, a second at a time. The next
      page continues.
    </Empty>
  );
  return (
    <Page title={title}>
      <Filters entity={entity} />
      <List
        of={list}
        one={one}
        many={entity}
        caption={`${title}, by id`}
        columns={[
          ['Id', (profile) => <span class="name">{visibleText(idOf(profile))}</span>],
          ...(entity === 'users' ? [companyColumn] : []),
          ...columns,
        ]}
        keyOf={idOf}
        hrefOf={(profile) => profileHref(entity, idOf(profile))}
        empty={list.data?.next == null ? none : noneYet}
      />
    </Page>
  );
}

function Filters({ entity }: { readonly entity: Entity }): VNode {
  const isUsers = entity === 'users';
  const segments = useData(isUsers ? 'segments' : null, loadSegments);
  const query = useQuery();
  const of = query.filter;
  const choices = segments.data?.data.filter(({ is_hidden }) => !is_hidden) ?? [];
  const options = choices.map(({ id, title }) => [String(id), visibleText(title)] as const);
  return (
    <search class="row filters">
      <FilterText label="Id begins with" placeholder={isUsers ? 'u1' : 'acme'} {...of('id_prefix')} />
      <FilterText label="Property" placeholder="plan:pro" {...of('property')} />
      {isUsers ? (
        <>
          <FilterText label="Company" placeholder="acme" {...of('company_id')} />
          <FilterSelect label="Segment" options={[['', 'Any'], ...options]} {...of('segment_id')} />
        </>
      ) : null}
      {query.get('job_id') === '' ? null : (
        <span class="filter">
          <span class="field-label">Written by</span>
          <JobLink id={query.get('job_id')} />
        </span>
      )}
      <ClearFilters names={filters} />
      <Problems error={segments.error} />
    </search>
  );
}

const companyColumn: Column<Profile> = [
  'Company',
  ({ company_id }) =>
    company_id === null ? (
      <span class="faint">–</span>
    ) : (
      <a href={profileHref('companies', company_id)}>{visibleText(company_id)}</a>
    ),
  'minor',
];

const columns: readonly Column<Profile>[] = [
  ['Properties', ({ metadata }) => glanceOf(metadata)],
  ['First seen', ({ first_seen_at }) => <Time at={first_seen_at} />, 'num minor'],
  ['Last seen', ({ last_seen_at }) => <Time at={last_seen_at} ago />, 'num minor'],
];

const mostShown = 4;
const mostCharacters = 28;

/** Shows the first properties on one line. */
function glanceOf(properties: Profile['metadata']): VNode {
  const all = Object.entries(properties);
  const rest = all.length - mostShown;
  const cut = (text: string): string => visibleText(shorten(text, mostCharacters));
  if (all.length === 0) return <span class="faint">none</span>;
  return (
    <span class="row glance">
      {all.slice(0, mostShown).map(([name, value]) => (
        <span key={name}>
          <span class="faint">{cut(name)}</span> {cut(valueText(value))}
        </span>
      ))}
      {rest > 0 ? <span class="faint">and {rest} more</span> : null}
    </span>
  );
}
