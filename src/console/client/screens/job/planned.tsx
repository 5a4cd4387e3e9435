import type { VNode } from 'preact';
import { api } from '../../lib/api.ts';
import { formatCount, plural, visibleText } from '../../lib/format.ts';
import { apiHref } from '../../lib/place.ts';
import { useData } from '../../lib/use-data.ts';
import { Section } from '../../ui/page.tsx';
import { Problems } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';

interface Property {
  readonly entity: string;
  readonly name: string;
  readonly appear: number;
  readonly change: number;
  readonly go: number;
  readonly change_type: number;
  readonly is_new: boolean;
}

interface Profiles {
  readonly new: number;
  readonly changed: number;
}

interface FullPlan {
  readonly applied_at: string | null;
  readonly profiles: { readonly users: Profiles; readonly companies: Profiles };
  readonly properties: readonly Property[];
  readonly more_properties: number;
  readonly sample: readonly {
    readonly entity: string;
    readonly id: string;
    readonly before: Readonly<Record<string, unknown>>;
    readonly after: Readonly<Record<string, unknown>>;
  }[];
}

const columns: readonly Column<Property>[] = [
  {
    id: 'name',
    title: 'Property',
    cell: ({ name, is_new }) => (
      <span class="break">
        {visibleText(name)}
        {is_new ? <span class="faint"> new</span> : null}
      </span>
    ),
  },
  { id: 'entity', title: 'Of', isMinor: true, cell: ({ entity }) => entity },
  { id: 'appear', title: 'Added', isNumber: true, cell: ({ appear }) => formatCount(appear) },
  { id: 'change', title: 'Changed', isNumber: true, cell: ({ change }) => formatCount(change) },
  { id: 'go', title: 'Removed', isNumber: true, cell: ({ go }) => formatCount(go) },
  {
    id: 'type',
    title: 'Type changed',
    isNumber: true,
    isMinor: true,
    cell: ({ change_type }) => formatCount(change_type),
  },
];

/** What a planned load would write, or has written: by property, and before → after of some rows. */
export function Planned({ jobId }: { readonly jobId: string }): VNode {
  const path = `/v1/background_jobs/${jobId}/plan`;
  const { data, error, reload } = useData(path, (signal) => api<FullPlan>(path, { signal }));
  return (
    <Section
      title="Plan"
      flush
      aside={
        <a class="button button-quiet" href={apiHref(`${path}?format=csv`)} download>
          All rows as CSV
        </a>
      }
    >
      <Problems error={error} onRetry={reload} />
      {data === undefined ? null : (
        <>
          <p class="planned-said">
            {describe('user', data.profiles.users)},{' '}
            {describe('company', data.profiles.companies, 'companies')}.
            {data.applied_at === null ? ' Nothing has been written.' : ''}
          </p>
          <Table
            caption="What would change, by property"
            columns={columns}
            rows={data.properties}
            keyOf={({ entity, name }) => `${entity} ${name}`}
          />
          <Sample rows={data.sample} />
        </>
      )}
    </Section>
  );
}

function describe(one: string, { new: added, changed }: Profiles, many = `${one}s`): string {
  return `${formatCount(added)} new and ${formatCount(changed)} changed ${added + changed === 1 ? one : many}`;
}

function Sample({ rows }: { readonly rows: FullPlan['sample'] }): VNode | null {
  if (rows.length === 0) return null;
  return (
    <details class="planned-sample">
      <summary>Before and after of {plural(rows.length, 'row')}</summary>
      <dl>
        {rows.map(({ entity, id, before, after }) => (
          <div key={`${entity} ${id}`}>
            <dt class="mono">{visibleText(id)}</dt>
            {[...new Set([...Object.keys(before), ...Object.keys(after)])].map((name) => (
              <dd key={name}>
                <span class="muted">{visibleText(name)}</span>{' '}
                <del class="mono">{valueText(before[name])}</del> →{' '}
                <ins class="mono">{valueText(after[name])}</ins>
              </dd>
            ))}
          </div>
        ))}
      </dl>
    </details>
  );
}

function valueText(value: unknown): string {
  return value === undefined ? 'nothing' : visibleText(JSON.stringify(value));
}
