import type { ComponentChildren, VNode } from 'preact';
import { api, mayUse } from '../../lib/api.ts';
import { formatCount, formatShare, plural } from '../../lib/format.ts';
import { apiHref, screenHref } from '../../lib/place.ts';
import { useAction, useData } from '../../lib/use-data.ts';
import type { Query } from '../../lib/use-query.ts';
import { Badge, StatusBadge } from '../../ui/badge.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty, Loading, Problems } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Value, VisibleText } from '../../ui/visible-text.tsx';
import { Balance } from '../job/balance.tsx';
import { type Inspection, mapOf, optionsOf } from './inspection.ts';
import {
  isEnded,
  type LoadDetail,
  type PlanDetail,
  type PlannedProperty,
  type PlannedRow,
  useLoad,
} from './load-record.ts';

interface Props {
  readonly query: Query;
  readonly found: Inspection;
}

/** As they are asked for: with the map that is proposed, where none was chosen. */
function loadOptions(query: Query, found: Inspection): Record<string, unknown> {
  const options = optionsOf(query);
  const isChosen = mapOf(query) !== null || query.get('mapping') !== '';
  if (isChosen || Object.keys(found.map).length === 0) return options;
  return { ...options, map: found.map };
}

/** Has the server go through the whole file and write nothing. */
export function StartPlan({ query, found }: Props): VNode {
  const start = useAction(async () => {
    const body = { ...loadOptions(query, found), plan: true };
    const { job_id } = await api<{ readonly job_id: string }>('/v1/imports', { method: 'POST', body });
    query.set({ plan: job_id, step: 'plan', job: undefined });
  });
  const isIdMissing = !found.columns.some(({ becomes }) => becomes === 'user_id' || becomes === 'company_id');
  return (
    <>
      <Problems error={start.error} />
      <button
        type="button"
        class="button button-main"
        disabled={start.isRunning || isIdMissing || !mayUse('import')}
        onClick={() => void start.run()}
      >
        Plan the load
      </button>
      <p class="hint">
        {isIdMissing
          ? 'First choose the column that is the user id or the company id.'
          : 'Reads the whole file, and writes nothing.'}
      </p>
    </>
  );
}

/** What the load would do, before it does anything. */
export function Plan({ query, found }: Props): VNode {
  const jobId = query.get('plan');
  const job = useLoad(jobId);
  if (jobId === '') {
    return (
      <Section title="Not planned yet">
        <div class="step-foot step-foot-alone">
          <StartPlan query={query} found={found} />
        </div>
      </Section>
    );
  }
  if (job.data === undefined || job.data.job_id !== jobId) {
    return job.error === null ? <Loading /> : <Problems error={job.error} onRetry={job.reload} />;
  }
  if (!isEnded(job.data)) {
    return (
      <>
        <Problems error={job.error} onRetry={job.reload} />
        <Progress job={job.data} words="Reading the whole file; nothing is written" />
      </>
    );
  }
  return (
    <>
      <Problems error={job.error} />
      <Planned query={query} job={job.data} />
    </>
  );
}

export function Progress({ job, words }: { readonly job: LoadDetail; readonly words: string }): VNode {
  const done = formatCount(job.completed_rows);
  return (
    <Section title={words} aside={<StatusBadge status={job.status} />}>
      <div class="load-progress">
        <progress max={1} value={job.progress} aria-label={words} />
        <p class="num muted" role="status">
          {done} of {plural(job.total_rows, 'record')} · {formatShare(job.completed_rows, job.total_rows)}
          {job.rows_per_second === null ? '' : ` · ${formatCount(job.rows_per_second)} a second`}
          {job.queue_position === null ? '' : ` · ${plural(job.queue_position, 'job')} ahead`}
        </p>
        {job.last_error === null ? null : <p class="warn">{job.last_error}</p>}
      </div>
    </Section>
  );
}

function Planned({ query, job }: Pick<Props, 'query'> & { readonly job: LoadDetail }): VNode {
  const { counts, failure } = job;
  const path = `/v1/background_jobs/${job.job_id}/plan`;
  const plan = useData(job.plan == null ? null : path, (signal) => api<PlanDetail>(path, { signal }));
  const writes = counts.inserted + counts.updated;
  return (
    <>
      {failure === null ? null : <Notice>{failure.message}</Notice>}
      {job.duplicate_of === null ? null : <Duplicate jobId={job.duplicate_of} />}
      <Section title={`${plural(counts.read, 'record')} planned`}>
        <Balance jobId={job.job_id} counts={{ ...counts }} total={job.total_rows} />
      </Section>
      <Problems error={plan.error} onRetry={plan.reload} />
      {plan.data === undefined ? null : <Changes plan={plan.data} csv={apiHref(`${path}?format=csv`)} />}
      <div class="step-foot">
        <Apply query={query} job={job} writes={writes} />
      </div>
    </>
  );
}

function Duplicate({ jobId }: { readonly jobId: string }): VNode {
  return (
    <div class="notice">
      <p>
        The same bytes were loaded before, by <a href={screenHref(`/jobs/${jobId}`)}>this job</a>.
      </p>
    </div>
  );
}

function Apply({
  query,
  job,
  writes,
}: Pick<Props, 'query'> & { readonly job: LoadDetail; readonly writes: number }): VNode {
  if (job.plan != null && job.plan.applied_at !== null)
    return (
      <a href={query.href({ step: 'result', job: job.job_id })}>This plan was applied: see the result</a>
    );
  if (job.status !== 'completed')
    return <p class="hint">Nothing would be loaded. Change the columns or how the file is read.</p>;
  const refused =
    job.counts.rejected === 0
      ? ''
      : ` ${plural(job.counts.rejected, 'record')} will be refused, and can be mended then.`;
  return (
    <>
      <ApplyButton query={query} jobId={job.job_id} onDrift="refuse">
        Load: write {plural(writes, 'record')}
      </ApplyButton>
      <p class="hint">
        {formatCount(job.counts.inserted)} new, {formatCount(job.counts.updated)} changed.{refused}
      </p>
    </>
  );
}

/** Has the server load exactly what it planned. `refuse`: only if no profile of the plan has changed since. */
export function ApplyButton({
  query,
  jobId,
  onDrift,
  children,
}: {
  readonly query: Query;
  readonly jobId: string;
  readonly onDrift: 'refuse' | 'proceed';
  readonly children: ComponentChildren;
}): VNode {
  const apply = useAction(async () => {
    await api(`/v1/background_jobs/${jobId}/apply`, { method: 'POST', body: { on_drift: onDrift } });
    query.set({ step: 'result', job: jobId });
  });
  return (
    <>
      <Problems error={apply.error} />
      <button
        type="button"
        class="button button-main"
        disabled={apply.isRunning || !mayUse('import')}
        onClick={() => void apply.run()}
      >
        {children}
      </button>
    </>
  );
}

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

function Changes({ plan, csv }: { readonly plan: PlanDetail; readonly csv: string }): VNode {
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
