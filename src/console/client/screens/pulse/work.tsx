import type { VNode } from 'preact';
import { formatCount, plural, visibleText } from '../../lib/format.ts';
import { screenHref } from '../../lib/place.ts';
import { Section } from '../../ui/page.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import type { FailingTask, Queue, Work as WorkOf } from './overview.ts';

const failingColumns: readonly Column<FailingTask>[] = [
  {
    id: 'task',
    title: 'Task',
    cell: ({ task, part, job_id }) => {
      const words = task === 'chunk' ? `chunk ${formatCount(part)}` : task;
      return job_id === null ? words : <a href={screenHref(`/jobs/${job_id}`)}>{words}</a>;
    },
  },
  {
    id: 'error',
    title: 'Last error',
    cell: ({ last_error }) => (
      <span class="break">{last_error === null ? 'lost its worker' : visibleText(last_error)}</span>
    ),
  },
  { id: 'failures', title: 'Failed', isNumber: true, cell: ({ failures }) => formatCount(failures) },
  {
    id: 'losses',
    title: 'Workers lost',
    isNumber: true,
    isMinor: true,
    cell: ({ losses }) => formatCount(losses),
  },
  {
    id: 'next',
    title: 'Next try',
    isNumber: true,
    cell: ({ next_try_at }) => (next_try_at === null ? 'under way' : <Time at={next_try_at} ago />),
  },
];

/** Tasks of the ledger, and the queue that says that some are due. */
export function Work({ of, queue }: { readonly of: WorkOf; readonly queue: Queue | null }): VNode {
  const { waiting, running, postponed, failing } = of;
  return (
    <Section
      title="Background work"
      aside={
        <span class="muted num">
          {plural(waiting, 'task')} waiting, {formatCount(running)} running, {formatCount(postponed)} to be
          retried
        </span>
      }
      flush
    >
      {failing.length === 0 ? (
        <p class="work-line muted">No task is failing.</p>
      ) : (
        <>
          <Table
            caption="Failing tasks"
            columns={failingColumns}
            rows={failing}
            keyOf={({ task, job_id, part }) => `${task} ${job_id} ${part}`}
          />
          {failing.length === mostFailing ? (
            <p class="work-line hint">The first {mostFailing} that fail; there may be more.</p>
          ) : null}
        </>
      )}
      {queue === null ? null : <QueueLine of={queue} />}
    </Section>
  );
}

/** The overview has no more of them. */
const mostFailing = 20;

const stores = { postgres: 'PostgreSQL', redis: 'Redis' } as const;

function QueueLine({ of: { lives_in, is_known, queues } }: { readonly of: Queue }): VNode {
  const counts = queues.map(
    ({ name, waiting, active, delayed, failed }) =>
      `${name} has ${formatCount(waiting)} waiting, ${formatCount(active)} active, ${formatCount(delayed)} delayed, ${formatCount(failed)} failed`,
  );
  return (
    <p class="work-line hint">
      Queue in {stores[lives_in]}: {is_known ? `${counts.join('; ')}.` : 'it does not answer.'} It only says
      that work is due; the ledger has the work.
    </p>
  );
}
