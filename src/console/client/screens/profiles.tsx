import type { VNode } from 'preact';
import { apiPage, type Page as ListPage, withQuery } from '../lib/api.ts';
import { shorten, visibleText } from '../lib/format.ts';
import { screenHref } from '../lib/place.ts';
import { useData } from '../lib/use-data.ts';
import { type Query, useQuery } from '../lib/use-query.ts';
import { FilterSelect, FilterText } from '../ui/field.tsx';
import { Page } from '../ui/page.tsx';
import { Pager } from '../ui/pager.tsx';
import { Empty, Loading, Problems } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import {
  type Entity,
  idOf,
  loadSegments,
  type Profile,
  profileScreen,
  valueText,
  words,
} from './profile-record.ts';

const filters = ['id_prefix', 'property', 'company_id', 'segment_id'] as const;

/** Users, by id; looked up by the beginning of an id, a property, a company, a segment. */
export function Users(): VNode {
  return <Profiles entity="users" />;
}

export function Companies(): VNode {
  return <Profiles entity="companies" />;
}

function Profiles({ entity }: { readonly entity: Entity }): VNode {
  const query = useQuery();
  const { title, many } = words[entity];
  const given = Object.fromEntries(filters.map((name) => [name, query.get(name)]));
  const path = withQuery(`/v1/${entity}`, { ...given, cursor: query.get('cursor') });
  const list = useData(path, (signal) => apiPage<Profile>(path, { signal }));
  const isFiltered = filters.some((name) => query.get(name) !== '');
  return (
    <Page title={title}>
      <Filters entity={entity} query={query} isFiltered={isFiltered} />
      <Problems error={list.error} onRetry={list.reload} />
      <div class="panel" aria-busy={list.isLoading}>
        {list.data === undefined ? (
          <Loading rows={10} label={`Looking for ${many}`} />
        ) : (
          <List entity={entity} page={list.data} query={query} isFiltered={isFiltered} />
        )}
      </div>
    </Page>
  );
}

function Filters({
  entity,
  query,
  isFiltered,
}: {
  readonly entity: Entity;
  readonly query: Query;
  readonly isFiltered: boolean;
}): VNode {
  const isUsers = entity === 'users';
  const segments = useData(isUsers ? 'segments' : null, loadSegments);
  const filter = (name: string) => (value: string) =>
    query.set({ [name]: value, cursor: undefined, row: undefined });
  const choices = segments.data?.data.filter(({ is_hidden }) => !is_hidden) ?? [];
  const clear = Object.fromEntries([...filters, 'cursor', 'row'].map((name) => [name, undefined]));
  return (
    <search class="filters">
      <FilterText
        label="Id begins with"
        value={query.get('id_prefix')}
        placeholder={isUsers ? 'u1' : 'acme'}
        onChange={filter('id_prefix')}
      />
      <FilterText
        label="Property"
        value={query.get('property')}
        placeholder="plan:pro"
        onChange={filter('property')}
      />
      {isUsers ? (
        <>
          <FilterText
            label="Company"
            value={query.get('company_id')}
            placeholder="acme"
            onChange={filter('company_id')}
          />
          <FilterSelect
            label="Segment"
            value={query.get('segment_id')}
            options={[
              ['', 'Any'],
              ...choices.map(({ id, title }) => [String(id), visibleText(title)] as const),
            ]}
            onChange={filter('segment_id')}
          />
        </>
      ) : null}
      {isFiltered ? (
        <a class="button button-quiet" href={query.href(clear)}>
          Clear
        </a>
      ) : null}
      <Problems error={segments.error} />
    </search>
  );
}

function List({
  entity,
  page,
  query,
  isFiltered,
}: {
  readonly entity: Entity;
  readonly page: ListPage<Profile>;
  readonly query: Query;
  readonly isFiltered: boolean;
}): VNode {
  const { many, one } = words[entity];
  if (page.items.length === 0 && page.next === null) {
    return (
      <Empty title={isFiltered ? `No ${one} matches` : `There are no ${many} yet`}>
        {isFiltered ? (
          'Ids and values are compared letter by letter.'
        ) : (
          <a href={screenHref('/load')}>Load a file</a>
        )}
      </Empty>
    );
  }
  return (
    <>
      {page.items.length === 0 ? (
        <Empty title={`No ${one} among those that were searched so far`}>
          Properties have no index: profiles are searched in the order of their ids, a second at a time. The
          next page continues.
        </Empty>
      ) : (
        <Table
          caption={`${words[entity].title}, by id`}
          columns={columnsOf(entity)}
          rows={page.items}
          keyOf={idOf}
          hrefOf={(profile) => screenHref(profileScreen(entity, idOf(profile)))}
          selected={query.get('row')}
          onSelect={(row) => query.set({ row }, { replace: true })}
        />
      )}
      <Pager page={page} noun={page.items.length === 1 ? one : many} />
    </>
  );
}

function columnsOf(entity: Entity): readonly Column<Profile>[] {
  const company: Column<Profile> = {
    id: 'company',
    title: 'Company',
    isMinor: true,
    cell: ({ company_id }) =>
      company_id === null ? (
        <span class="faint">–</span>
      ) : (
        <a href={screenHref(profileScreen('companies', company_id))}>{visibleText(company_id)}</a>
      ),
  };
  return [
    {
      id: 'id',
      title: 'Id',
      cell: (profile) => <span class="profile-id">{visibleText(idOf(profile))}</span>,
    },
    ...(entity === 'users' ? [company] : []),
    { id: 'properties', title: 'Properties', cell: ({ metadata }) => <Glance of={metadata} /> },
    {
      id: 'first',
      title: 'First seen',
      isNumber: true,
      isMinor: true,
      cell: ({ first_seen_at }) => <Time at={first_seen_at} />,
    },
    {
      id: 'last',
      title: 'Last seen',
      isNumber: true,
      isMinor: true,
      cell: ({ last_seen_at }) => <Time at={last_seen_at} ago />,
    },
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
