import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import { api } from '../../lib/api.ts';
import { formatCount, formatShare, plural, visibleText } from '../../lib/format.ts';
import { screenHref } from '../../lib/place.ts';
import { useData } from '../../lib/use-data.ts';
import { type Query, useQuery } from '../../lib/use-query.ts';
import { StatusBadge } from '../../ui/badge.tsx';
import { Page, Section } from '../../ui/page.tsx';
import { Empty, Loading, Problems } from '../../ui/problems.tsx';
import { isEnded, type LoadDetail, refusedState, useLoad } from '../load/load-record.ts';
import { Causes } from './causes.tsx';
import { Grid } from './grid.tsx';
import { MendedFile } from './mended-file.tsx';
import type { Cause } from './reject-record.ts';

/** What a load refused, to be mended until nothing is left. */
export function Refused(): VNode {
  const { job: id = '' } = useRoute().params;
  const query = useQuery();
  const job = useLoad(id);
  return (
    <Page
      title="Refused records"
      parent={{ title: visibleText(job.data?.filename ?? 'Job'), href: screenHref(`/jobs/${id}`) }}
      aside={job.data === undefined ? null : <StatusBadge status={job.data.status} />}
    >
      <Problems error={job.error} onRetry={job.reload} />
      {job.data === undefined ? (
        <Loading />
      ) : (
        <RefusedRecords query={query} job={job.data} onChange={job.reload} />
      )}
    </Page>
  );
}

interface Props {
  readonly query: Query;
  readonly job: LoadDetail;
  readonly onChange: () => void;
}

/** The same as part of another screen. */
export function RefusedRecords({ query, job, onChange }: Props): VNode {
  const { counts } = job;
  const path = `/v1/background_jobs/${job.job_id}/rejects?group_by=cause`;
  const causes = useData(`${path} ${refusedState(job)}`, (signal) =>
    api<{ readonly data: readonly Cause[] }>(path, { signal }),
  );
  // A cause that is mended is gone: the records of all others are shown again.
  const cause = query.get('cause');
  const isGone = cause !== '' && causes.data?.data.every(({ id }) => id !== cause) === true;
  useEffect(() => {
    if (isGone) query.set({ cause: undefined, cursor: undefined }, { replace: true });
  }, [isGone]);
  return (
    <>
      <Mending job={job} />
      {counts.rejected === 0 ? (
        <Empty title={counts.amended === 0 ? 'No record was refused' : 'Nothing is left to mend'}>
          {counts.amended === 0
            ? null
            : `${plural(counts.amended, 'refused record')} mended, at their place in the file.`}
        </Empty>
      ) : (
        <>
          <Problems error={causes.error} onRetry={causes.reload} />
          <Section
            title="Why they were refused"
            aside={<MendedFile key={job.job_id} job={job} onChange={onChange} />}
            flush
          >
            {causes.data === undefined ? (
              <Loading />
            ) : (
              <Causes query={query} job={job} causes={causes.data.data} onChange={onChange} />
            )}
          </Section>
          <Grid query={query} job={job} onChange={onChange} />
        </>
      )}
    </>
  );
}

/** How many of the records that were refused are mended by now, and what is on its way. */
function Mending({ job }: { readonly job: LoadDetail }): VNode | null {
  const { rejected, amended } = job.counts;
  const all = rejected + amended;
  if (all === 0) return null;
  const underWay = job.amendments.filter((each) => !isEnded(each));
  const failed = job.amendments.filter(({ status }) => status === 'failed');
  const rowsUnderWay = underWay.reduce((sum, each) => sum + each.total_rows, 0);
  return (
    <section class="panel mending" aria-label="How much is mended">
      <p class="mending-figures num">
        <strong>{formatShare(amended, all)}</strong>
        <span class="muted">
          mended: {formatCount(amended)} of {plural(all, 'refused record')}, {formatCount(rejected)} left
        </span>
      </p>
      <progress class="mending-bar" max={all} value={amended} aria-label="Refused records that are mended" />
      <p class="hint" role="status">
        {underWay.length > 0 ? `${plural(rowsUnderWay, 'mended record')} on the way` : ''}
        {rejected === 0 ? 'All refused records are mended.' : ''}
      </p>
      {failed.map(({ job_id }) => (
        <p key={job_id} class="hint">
          <a href={screenHref(`/jobs/${job_id}`)}>A job that mends some of them failed</a>; those are still
          refused.
        </p>
      ))}
    </section>
  );
}
