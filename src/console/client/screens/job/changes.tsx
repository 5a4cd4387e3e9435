import type { VNode } from 'preact';
import type { Plan } from '../../../../api/load.ts';
import { apiHref, useApi } from '../../lib/api.ts';
import { formatCount, plural, visibleText } from '../../lib/format.ts';
import { jobPath } from '../../lib/jobs.ts';
import { Badge, Empty, Loaded, Section, Value, VisibleText } from '../../ui/page.tsx';
import { type Column, Table } from '../../ui/table.tsx';

/** Shows what a planned load would write, or has written: profiles, values by property, and rows before → after. */
export function Changes({ jobId }: { readonly jobId: string }): VNode {
  const path = `${jobPath(jobId)}/plan`;
  const plan = useApi<Plan>(path);
  return (
    <Loaded of={plan} rows={3}>
      {({ profiles, applied_at, properties, more_properties: more, sample }) => (
        <>
          <Section
            title="Plan"
            aside={more === 0 ? null : <span class="hint">and {formatCount(more)} more properties</span>}
            flush
          >
            <p class="line muted">
              {profilesText(profiles.users, 'user')},{' '}
              {profilesText(profiles.companies, 'company', 'companies')}.
              {applied_at === null ? ' Nothing has been written.' : ''}
            </p>
            <Table
              caption="Values that would change, by property"
              columns={propertyColumns}
              rows={properties}
              keyOf={({ entity, name }) => `${entity} ${name}`}
              empty={<Empty title="No value would change" />}
            />
          </Section>
          {sample.length === 0 ? null : (
            <Section
              title={`Before → after, ${plural(sample.length, 'row')} of those that change`}
              aside={
                <a class="button button-quiet" href={apiHref(`${path}?format=csv`)} download>
                  All as CSV
                </a>
              }
              flush
            >
              <Table
                caption="Rows that would change"
                columns={lineColumns}
                rows={sample.flatMap(linesOf)}
                keyOf={({ key }) => key}
              />
            </Section>
          )}
        </>
      )}
    </Loaded>
  );
}

function profilesText(
  { new: added, changed }: Plan['profiles']['users'],
  one: string,
  many = `${one}s`,
): string {
  return `${formatCount(added)} new and ${formatCount(changed)} changed ${added + changed === 1 ? one : many}`;
}

const propertyColumns: readonly Column<Plan['properties'][number]>[] = [
  {
    title: 'Property',
    cell: ({ name, is_new }) => (
      <span class="row">
        <VisibleText text={name} />
        {is_new ? <Badge tone="busy">new property</Badge> : null}
      </span>
    ),
  },
  { title: 'Of', is: 'minor', cell: ({ entity }) => <span class="muted">{entity}</span> },
  { title: 'Added', is: 'num', cell: ({ appear }) => figure(appear) },
  { title: 'Changed', is: 'num', cell: ({ change }) => figure(change) },
  { title: 'Removed', is: 'num', cell: ({ go }) => figure(go) },
  { title: 'Type changed', is: 'num minor', cell: ({ change_type }) => figure(change_type) },
];

function figure(count: number): VNode {
  return <span class={count === 0 ? 'faint' : undefined}>{formatCount(count)}</span>;
}

interface Line {
  readonly key: string;
  /** Empty where the line above has the same id. */
  readonly id: string;
  readonly property: string;
  readonly before: unknown;
  readonly after: unknown;
}

function linesOf({
  entity,
  id,
  before,
  after,
  company_before,
  company_after,
}: Plan['sample'][number]): Line[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const pairs: [string, unknown, unknown][] = names.map((name) => [name, before[name], after[name]]);
  if (company_before !== company_after) pairs.unshift(['company', company_before, company_after]);
  return pairs.map(([property, was, is], at) => ({
    key: `${entity} ${id} ${property} ${at}`,
    id: at === 0 ? id : '',
    property,
    before: was,
    after: is,
  }));
}

const lineColumns: readonly Column<Line>[] = [
  { title: 'Id', cell: ({ id }) => <code>{visibleText(id)}</code> },
  { title: 'Property', cell: ({ property }) => <VisibleText text={property} /> },
  { title: 'Before', cell: ({ before }) => <span class="bad break">{<Value of={before} />}</span> },
  { title: 'After', cell: ({ after }) => <span class="good break">{<Value of={after} />}</span> },
];
