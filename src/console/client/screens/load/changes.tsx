import type { VNode } from 'preact';
import { formatCount, plural } from '../../lib/format.ts';
import { Badge } from '../../ui/badge.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Value, VisibleText } from '../../ui/visible-text.tsx';
import type { PlanDetail, PlannedProperty, PlannedRow } from './load-record.ts';

const propertyColumns: readonly Column<PlannedProperty>[] = [
  {
    id: 'name',
    title: 'Property',
    cell: ({ name, is_new: isNew }) => (
      <span class="planned-name">
        <VisibleText text={name} />
        {isNew ? <Badge tone="busy">new property</Badge> : null}
      </span>
    ),
  },
  { id: 'appear', title: 'Added', isNumber: true, cell: ({ appear }) => <Figure of={appear} /> },
  { id: 'change', title: 'Changed', isNumber: true, cell: ({ change }) => <Figure of={change} /> },
  { id: 'go', title: 'Removed', isNumber: true, cell: ({ go }) => <Figure of={go} /> },
  {
    id: 'type',
    title: 'Type changed',
    isNumber: true,
    isMinor: true,
    cell: ({ change_type: type }) => <Figure of={type} />,
  },
];

function Figure({ of }: { readonly of: number }): VNode {
  return of === 0 ? <span class="faint">0</span> : <span>{formatCount(of)}</span>;
}

/** What a plan would change: values by property, and rows before → after. */
export function Changes({ plan, csv }: { readonly plan: PlanDetail; readonly csv: string }): VNode {
  const { properties, more_properties: more, sample } = plan;
  const rows = sample.flatMap(linesOf);
  return (
    <>
      <Section
        title="Values, by property"
        aside={more === 0 ? null : <span class="hint">and {formatCount(more)} more</span>}
        flush
      >
        {properties.length === 0 ? (
          <Empty title="No value would change" />
        ) : (
          <Table
            caption="Values that would change, by property"
            columns={propertyColumns}
            rows={properties}
            keyOf={({ entity, name }) => `${entity} ${name}`}
          />
        )}
      </Section>
      {rows.length === 0 ? null : (
        <Section
          title={`Before → after, ${plural(sample.length, 'row')} of those that change`}
          aside={
            <a class="button button-quiet" href={csv} download>
              All as CSV
            </a>
          }
          flush
        >
          <Table
            caption="Rows that would change"
            columns={lineColumns}
            rows={rows}
            keyOf={({ key }) => key}
          />
        </Section>
      )}
    </>
  );
}

/** One value of a row that changes. */
interface Line {
  readonly key: string;
  /** Empty where it is that of the line above. */
  readonly id: string;
  readonly property: string;
  readonly before: unknown;
  readonly after: unknown;
}

function linesOf({ entity, id, before, after, company_before, company_after }: PlannedRow): Line[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const pairs: [string, unknown, unknown][] = names.map((name) => [name, before[name], after[name]]);
  if (company_before !== company_after)
    pairs.unshift(['company', company_before ?? undefined, company_after ?? undefined]);
  return pairs.map(([property, was, is], at) => ({
    key: `${entity} ${id} ${property} ${at}`,
    id: at === 0 ? id : '',
    property,
    before: was,
    after: is,
  }));
}

const lineColumns: readonly Column<Line>[] = [
  {
    id: 'id',
    title: 'Id',
    cell: ({ id }) => (
      <span class="mono">
        <VisibleText text={id} />
      </span>
    ),
  },
  { id: 'property', title: 'Property', cell: ({ property }) => <VisibleText text={property} /> },
  {
    id: 'before',
    title: 'Before',
    cell: ({ before }) => (
      <span class="before">
        <Value of={before} />
      </span>
    ),
  },
  {
    id: 'after',
    title: 'After',
    cell: ({ after }) => (
      <span class="after">
        <Value of={after} />
      </span>
    ),
  },
];
