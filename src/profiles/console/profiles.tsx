import type { VNode } from 'preact';
import { useQuery, withQuery } from '../../console/client/lib/address.ts';
import { mayUse, type Page as PageOf, post } from '../../console/client/lib/api.ts';
import { type Loaded, useApiPage, useData } from '../../console/client/lib/data.ts';
import { valueText, visibleText } from '../../console/client/lib/format.ts';
import { type Entity, profileHref, type Who, words } from '../../console/client/lib/profiles.ts';
import { FilterText, SelectField } from '../../console/client/ui/controls.tsx';
import { ClearFilters, type Column, List } from '../../console/client/ui/list.tsx';
import { Empty, JobLink, Marked, Page, Problems, Time, TwoLines } from '../../console/client/ui/page.tsx';
import { PropertySummary } from '../../console/client/ui/properties.tsx';
import { WayIn } from '../../console/client/ui/way-in.tsx';
import { namingProperties } from '../../domain/entity.ts';
import type { ExportPreview } from '../../export/api.ts';
import { exportsPath, rowsText } from '../../export/console/request.tsx';
import { loadSegments } from '../../lookups/console/list-segments.ts';
import type { Profile } from '../api.ts';

export function Users(): VNode {
  return <Profiles entity="users" />;
}

export function Companies(): VNode {
  return <Profiles entity="companies" />;
}

const filters = ['search', 'property', 'company_id', 'segment_id', 'job_id'] as const;

function Profiles({ entity }: { readonly entity: Entity }): VNode {
  const query = useQuery();
  const { title, one } = words[entity];
  const filterValues = query.given(filters);
  const isFiltered = Object.keys(filterValues).length > 0;
  const term = query.get('search');
  const path = withQuery(`/v1/${entity}`, { ...filterValues, cursor: query.get('cursor') });
  const list = useApiPage<Profile>(path);
  const idOf = ({ user_id, company_id }: Profile): string => user_id ?? company_id ?? '';
  const none = isFiltered ? (
    <Empty title={`No ${one} matches`}>Properties and companies must match exactly.</Empty>
  ) : (
    <Empty title={`There are no ${entity} yet`}>
      <WayIn />
    </Empty>
  );
  return (
    <Page
      title={title}
      aside={
        <>
          {isFiltered || !mayUse('export') ? null : <Count entity={entity} />}
          <Found of={list} isFiltered={isFiltered} />
        </>
      }
    >
      <Filters entity={entity} />
      <List
        of={list}
        one={one}
        many={entity}
        caption={`${title}, by id`}
        columns={[
          [
            'Id',
            (profile) => (
              <TwoLines below={<Called of={profile} term={term} />}>
                <Marked text={idOf(profile)} term={term} />
              </TwoLines>
            ),
          ],
          ...(entity === 'users' ? [companyColumn] : []),
          ...columns,
        ]}
        keyOf={idOf}
        hrefOf={(profile) => profileHref(entity, idOf(profile))}
        empty={none}
      />
    </Page>
  );
}

/**
 * Shows the number of profiles. The number may be an estimate, because the preview of exports
 * counts profiles within a time limit.
 */
function Count({ entity }: Pick<Who, 'entity'>): VNode {
  const body = { event_type: [entity] };
  const { data } = useData(entity, (signal) => post<ExportPreview>(`${exportsPath}/preview`, body, signal));
  return <span class="faint num">{data && rowsText(data, words[entity].one, entity)}</span>;
}

interface FoundProps {
  readonly of: Loaded<PageOf<Profile>>;
  readonly isFiltered: boolean;
}

/** Announces the number of matches to screen readers while the user types a filter. */
function Found({ of: { data, isLoading, error }, isFiltered }: FoundProps): VNode {
  const isShown = isFiltered && data !== undefined && error === null;
  const matches = `${data?.items.length} found${data?.next == null ? '' : ', and there may be more'}`;
  const message = isLoading ? 'Searching …' : matches;
  return (
    <span class="faint" role="status">
      {isShown ? message : ''}
    </span>
  );
}

function Called({ of: { metadata }, term }: { readonly of: Profile; readonly term: string }): VNode {
  const values = metadata as Readonly<Record<string, unknown>>;
  const names = namingProperties.map((name) => valueText(values[name] ?? '')).filter(Boolean);
  return <Marked text={names.join(' · ')} term={term} />;
}

const searchPauseMs = 200;

function Filters({ entity }: { readonly entity: Entity }): VNode {
  const isUsers = entity === 'users';
  const segments = useData(isUsers ? 'segments' : null, loadSegments);
  const query = useQuery();
  const of = query.filter;
  const choices = segments.data?.data.filter(({ is_hidden }) => !is_hidden) ?? [];
  const options = choices.map(({ id, title }) => [String(id), visibleText(title)] as const);
  return (
    <search class="row filters">
      <FilterText
        label="Search"
        placeholder="Id, name or e-mail"
        pauseMs={searchPauseMs}
        value={query.get('search')}
        onChange={(search) => query.set({ search, cursor: undefined, row: undefined })}
      />
      <FilterText label="Property" placeholder="plan:pro" {...of('property')} />
      {isUsers ? (
        <>
          <FilterText label="Company" placeholder="acme" {...of('company_id')} />
          <SelectField label="Segment" options={[['', 'Any'], ...options]} {...of('segment_id')} />
        </>
      ) : null}
      {query.get('job_id') === '' ? null : (
        <span class="field">
          <span class="field-label">Written by</span>
          <JobLink id={query.get('job_id')} />
        </span>
      )}
      <ClearFilters names={filters} />
      <Problems error={segments.error} onRetry={segments.reload} />
    </search>
  );
}

const companyColumn: Column<Profile> = [
  'Company',
  ({ company_id: id, company_name: name }) =>
    id === null ? (
      <span class="faint">–</span>
    ) : (
      <TwoLines below={name == null ? null : <bdi>{visibleText(id)}</bdi>}>
        <a href={profileHref('companies', id)}>
          <bdi>{visibleText(name ?? id)}</bdi>
        </a>
      </TwoLines>
    ),
  'minor',
];

const columns: readonly Column<Profile>[] = [
  ['Properties', ({ metadata }) => <PropertySummary of={metadata} without={namingProperties} />],
  ['First seen', ({ first_seen_at }) => <Time at={first_seen_at} />, 'num minor'],
  ['Last seen', ({ last_seen_at }) => <Time at={last_seen_at} ago />, 'num minor'],
];
