import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type { RejectCause } from '../../../../api/reject.ts';
import { apiHref, useApi, useQuery, withQuery } from '../../lib/api.ts';
import { visibleText } from '../../lib/format.ts';
import { jobHref, jobPath, refusedState, useLoad } from '../../lib/jobs.ts';
import { Empty, Loaded, Page, Section, StatusBadge } from '../../ui/page.tsx';
import { Causes, type RefusedProps } from './causes.tsx';
import { Grid } from './grid.tsx';

/** Shows the records that a load refused. Corrected, they are loaded as a file of their own. */
export function Refused(): VNode {
  const { job: id = '' } = useRoute().params;
  const query = useQuery();
  const job = useLoad(id);
  return (
    <Page
      title="Refused records"
      parent={{ title: visibleText(job.data?.filename ?? 'Job'), href: jobHref(id) }}
      aside={job.data === undefined ? null : <StatusBadge status={job.data.status} />}
    >
      <Loaded of={job}>{(data) => <RefusedRecords query={query} job={data} onChange={job.reload} />}</Loaded>
    </Page>
  );
}

/** The same, as a part of another screen too. */
export function RefusedRecords({ query, job, onChange }: RefusedProps): VNode {
  const { counts } = job;
  const causes = useApi<{ readonly data: readonly RejectCause[] }>(
    `${jobPath(job.job_id)}/rejects?group_by=cause`,
    undefined,
    refusedState(job),
  );
  const cause = query.get('cause');
  const isGone = cause !== '' && causes.data?.data.every(({ id }) => id !== cause) === true;
  useEffect(() => {
    if (isGone) query.set({ cause: undefined, cursor: undefined });
  }, [isGone]);
  return (
    <>
      {counts.rejected === 0 ? (
        <Empty title="No record was refused" />
      ) : (
        <>
          <Section title="Why they were refused" aside={<Download job={job} />} flush>
            <Loaded of={causes}>{({ data }) => <Causes query={query} job={job} causes={data} />}</Loaded>
          </Section>
          <Grid query={query} job={job} onChange={onChange} />
        </>
      )}
    </>
  );
}

/** Downloads all refused records as a file, which is corrected and loaded like any other. */
function Download({ job }: Pick<RefusedProps, 'job'>): VNode {
  const format = ['csv', 'xlsx'].includes(job.read_as?.format ?? 'csv') ? 'csv' : 'ndjson';
  const href = apiHref(withQuery(`${jobPath(job.job_id)}/rejects`, { format }));
  return (
    <a class="button button-quiet" href={href} download>
      Download all as {format.toUpperCase()}
    </a>
  );
}
