import type { VNode } from 'preact';
import { formatCount } from '../../lib/format.ts';
import { screenHref } from '../../lib/place.ts';
import { StatusBadge } from '../../ui/badge.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { FileName } from '../../ui/visible-text.tsx';
import type { LaneItem, RunningJob } from './overview.ts';

const columns: readonly Column<LaneItem>[] = [
  {
    id: 'place',
    title: 'Job',
    cell: ({ position, filename, type }) => (
      <span>
        {position + 1}. <FileName name={filename ?? type.replaceAll('_', ' ')} />
      </span>
    ),
  },
  { id: 'status', title: 'State', cell: ({ status }) => <StatusBadge status={status} /> },
  {
    id: 'progress',
    title: 'Done',
    cell: ({ done, total, job_id }) => (
      <progress max={Math.max(1, total)} value={done} aria-label={`Done of ${job_id}`} />
    ),
    isMinor: true,
  },
  {
    id: 'rows',
    title: 'Rows',
    isNumber: true,
    cell: ({ done, total }) => `${formatCount(done)} of ${formatCount(total)}`,
  },
  {
    id: 'start',
    title: 'Accepted',
    isNumber: true,
    isMinor: true,
    cell: ({ start_time }) => <Time at={start_time} />,
  },
];

/** The overview has no more of them. */
const mostItems = 20;

interface LaneProps {
  readonly items: readonly LaneItem[];
  /** As they are now. */
  readonly running: readonly RunningJob[];
}

/** Loads and deletions take effect one after another: who runs, and who is next. */
export function Lane({ items, running }: LaneProps): VNode {
  const isCut = items.length === mostItems;
  const rows = items.map((item) => {
    const now = running.find(({ job_id }) => job_id === item.job_id);
    return now === undefined ? item : { ...item, status: 'processing', done: now.completed_rows };
  });
  return (
    <Section
      title="Lane"
      aside={isCut ? <span class="faint">the first {mostItems}; Jobs has all</span> : null}
      flush
    >
      {rows.length === 0 ? (
        <Empty title="Nothing runs and nothing waits" />
      ) : (
        <Table
          caption="Loads and deletions in the order in which they take effect"
          columns={columns}
          rows={rows}
          keyOf={({ job_id }) => job_id}
          hrefOf={({ job_id }) => screenHref(`/jobs/${job_id}`)}
        />
      )}
    </Section>
  );
}
