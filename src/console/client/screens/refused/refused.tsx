import type { ComponentChildren, VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import type { RejectCause } from '../../../../api/reject.ts';
import { api, apiHref, useAction, useApi, useQuery, withQuery } from '../../lib/api.ts';
import { formatCount, formatShare, plural, visibleText } from '../../lib/format.ts';
import { isUnfinished, jobHref, jobPath, refusedState, useLoad } from '../../lib/jobs.ts';
import { FileButton } from '../../ui/controls.tsx';
import { Empty, Loaded, Page, Problems, Section, StatusBadge } from '../../ui/page.tsx';
import { Causes, type RefusedProps } from './causes.tsx';
import { Grid } from './grid.tsx';

/** The records that a load refused, to be mended until none is left. */
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
  // A cause that was mended is gone: the records of all others are shown again.
  const cause = query.get('cause');
  const isGone = cause !== '' && causes.data?.data.every(({ id }) => id !== cause) === true;
  useEffect(() => {
    if (isGone) query.set({ cause: undefined, cursor: undefined });
  }, [isGone]);
  return (
    <>
      <Mending job={job} />
      {counts.rejected === 0 ? (
        <Empty title={counts.amended === 0 ? 'No record was refused' : 'Nothing is left to mend'}>
          {counts.amended === 0 ? null : `${plural(counts.amended, 'refused record')} mended.`}
        </Empty>
      ) : (
        <>
          <Section
            title="Why they were refused"
            aside={<MendedFile key={job.job_id} job={job} onChange={onChange} />}
            flush
          >
            <Loaded of={causes}>
              {({ data }) => <Causes query={query} job={job} causes={data} onChange={onChange} />}
            </Loaded>
          </Section>
          <Grid query={query} job={job} onChange={onChange} />
        </>
      )}
    </>
  );
}

/** Shows how many of the refused records are mended by now, what is on its way, and what became of the last mend. */
function Mending({ job }: { readonly job: LoadDetail }): VNode | null {
  const { rejected, amended } = job.counts;
  const all = rejected + amended;
  if (all === 0) return null;
  return (
    <section class="panel panel-padded stack mending" aria-label="How much is mended">
      <p class="row num">
        <strong>{formatShare(amended, all)}</strong>
        <span class="muted">
          mended: {formatCount(amended)} of {plural(all, 'refused record')}, {formatCount(rejected)} left
        </span>
      </p>
      <progress max={all} value={amended} aria-label="Refused records that are mended" />
      <p class="hint" role="status">
        {lastMend(job)}
      </p>
    </section>
  );
}

function lastMend({ counts, amendments }: LoadDetail): ComponentChildren {
  const onTheWay = amendments.filter((each) => isUnfinished(each));
  const [last] = amendments;
  if (onTheWay.length > 0) {
    const records = onTheWay.reduce((sum, each) => sum + each.total_rows, 0);
    return `${plural(records, 'mended record')} on the way`;
  }
  if (counts.rejected === 0) return 'All refused records are mended.';
  if (last === undefined) return null;
  const { job_id, status, total_rows, rejected } = last;
  if (status === 'completed') {
    const again = rejected === 0 ? '' : `, ${formatCount(rejected)} refused again: look at the reason`;
    return `The last mend: ${plural(total_rows - rejected, 'record')} mended${again}`;
  }
  return (
    <>
      <a href={jobHref(job_id)}>The last mend could not be loaded</a>; its records are still refused.
    </>
  );
}

/** Downloads all refused records as a file, and takes that file once it is mended. */
function MendedFile({ job, onChange }: Omit<RefusedProps, 'query'>): VNode {
  const isJson = !['csv', 'xlsx'].includes(job.read_as?.format ?? 'csv');
  const format = isJson ? 'ndjson' : 'csv';
  const path = jobPath(job.job_id);
  const send = useAction(async ([file]: readonly File[]) => {
    if (file === undefined) return;
    const headers = { 'content-type': isJson ? 'application/x-ndjson' : 'text/csv' };
    await api(withQuery(`${path}/amend`, { filename: file.name }), { method: 'POST', body: file, headers });
    onChange();
  });
  return (
    <div class="row">
      <a class="button button-quiet" href={apiHref(withQuery(`${path}/rejects`, { format }))} download>
        Download all as {format.toUpperCase()}
      </a>
      <FileButton look="quiet" disabled={send.isRunning} onFiles={(files) => void send.run(files)}>
        Send the mended file
      </FileButton>
      <Problems error={send.error} />
    </div>
  );
}
