import type { VNode } from 'preact';
import { type Query, screenHref, useQuery, without, withQuery } from '../../lib/address.ts';
import { apiPage, type Page as ListPage } from '../../lib/api.ts';
import { shorten, visibleText } from '../../lib/format.ts';
import type { Profile } from '../../lib/records.ts';
import { useData } from '../../lib/use-data.ts';
import { FilterSelect, FilterText } from '../../ui/field.tsx';
import { Page } from '../../ui/page.tsx';
import { Empty, Loading, Problems } from '../../ui/problems.tsx';
import { type Column, Pager, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/text.tsx';
import { type Entity, idOf, loadSegments, profileHref, valueText, words } from './profile-record.ts';

const filters = ['id_prefix', 'property', 'company_id', 'segment_id'] as const;

/** Users, by id; looked up by the beginning of an id, a property, a company, a segment. */
export function Users(): VNode {
  return <Profiles entity="users" />;
}

export function Companies(): VNode {
  return <Profiles entity="companies" />;
}

interface Part {
  readonly entity: Entity;
  readonly query: Query;
  readonly isFiltered: boolean;
}

function Profiles({ entity }: Pick<Part, 'entity'>): VNode {
  const query = useQuery();
  const { title, many } = words[entity];
  const given = query.given(filters);
  const path = withQuery(`/v1/${entity}`, { ...given, cursor: query.get('cursor') });
  const list = useData(path, (signal) => apiPage<Profile>(path, { signal }));
  const part = { entity, query, isFiltered: Object.keys(given).length > 0 };
  return (
    <Page title={title}>
      <Filters {...part} />
      <Problems error={list.error} onRetry={list.reload} />
      <div class="panel" aria-busy={list.isLoading}>
        {list.data === undefined ? (
          <Loading rows={10} label={`Looking for ${many}`} />
        ) : (
          <List {...part} page={list.data} />
        )}
      </div>
    </Page>
  );
}

function Filters({ entity, query, isFiltered }: Part): VNode {
  const isUsers = entity === 'users';
  const segments = useData(isUsers ? 'segments' : null, loadSegments);
  const of = (name: string) => ({ value: query.get(name), onChange: query.filter(name) });
  const choices = segments.data?.data.filter(({ is_hidden }) => !is_hidden) ?? [];
  const options = choices.map(({ id, title }) => [String(id), visibleText(title)] as const);
  return (
    <search class="filters">
      <FilterText label="Id begins with" placeholder={isUsers ? 'u1' : 'acme'} {...of('id_prefix')} />
      <FilterText label="Property" placeholder="plan:pro" {...of('property')} />
      {isUsers ? (
        <>
          <FilterText label="Company" placeholder="acme" {...of('company_id')} />
          <FilterSelect label="Segment" options={[['', 'Any'], ...options]} {...of('segment_id')} />
        </>
      ) : null}
      {isFiltered ? (
        <a class="button button-quiet" href={query.href(without(filters))}>
          Clear
        </a>
      ) : null}
      <Problems error={segments.error} />
    </search>
  );
}

function List({ entity, page, isFiltered }: Part & { readonly page: ListPage<Profile> }): VNode {
  const { many, one, title } = words[entity];
  if (page.items.length === 0 && page.next === null) {
    return (
      <Empty title={isFiltered ? `No ${one} matches` : `There are no ${many} yet`}>
        {isFiltered ? 'Ids and values must match exactly.' : <a href={screenHref('/load')}>Load a file</a>}
      </Empty>
    );
  }
  return (
    <>
      <Table
        caption={`${title}, by id`}
        columns={columnsOf(entity)}
        rows={page.items}
        keyOf={idOf}
        hrefOf={(profile) => profileHref(entity, idOf(profile))}
        isSelectable
        empty={
          <Empty title={`No ${one} among those that were searched so far`}>
            Properties have no index: profiles are searched in the order of their ids, a second at a time. The
            next page continues.
          </Empty>
        }
      />
      <Pager page={page} one={one} many={many} />
    </>
  );
}

function columnsOf(entity: Entity): readonly Column<Profile>[] {
  const company: Column<Profile> = {
    title: 'Company',
    is: 'minor',
    cell: ({ company_id }) =>
      company_id === null ? (
        <span class="faint">–</span>
      ) : (
        <a href={profileHref('companies', company_id)}>{visibleText(company_id)}</a>
      ),
  };
  return [
    { title: 'Id', cell: (profile) => <span class="name">{visibleText(idOf(profile))}</span> },
    ...(entity === 'users' ? [company] : []),
    { title: 'Properties', cell: ({ metadata }) => <Glance of={metadata} /> },
    { title: 'First seen', is: 'num minor', cell: ({ first_seen_at }) => <Time at={first_seen_at} /> },
    { title: 'Last seen', is: 'num minor', cell: ({ last_seen_at }) => <Time at={last_seen_at} ago /> },
  ];
}

const mostShown = 4;
const mostCharacters = 28;

/** The first properties on one line. */
function Glance({ of }: { readonly of: Profile['metadata'] }): VNode {
  const all = Object.entries(of);
  const rest = all.length - mostShown;
  if (all.length === 0) return <span class="faint">none</span>;
  return (
    <span class="glance">
      {all.slice(0, mostShown).map(([name, value]) => (
        <span key={name}>
          <span class="faint">{cut(name)}</span> {cut(valueText(value))}
        </span>
      ))}
      {rest > 0 ? <span class="faint">and {rest} more</span> : null}
    </span>
  );
}

function cut(text: string): string {
  return visibleText(shorten(text, mostCharacters));
}
