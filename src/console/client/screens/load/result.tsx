import type { VNode } from 'preact';
import { plural } from '../../lib/format.ts';
import { screenHref } from '../../lib/place.ts';
import type { Query } from '../../lib/use-query.ts';
import { StatusBadge } from '../../ui/badge.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Section } from '../../ui/page.tsx';
import { Loading, Problems } from '../../ui/problems.tsx';
import { Balance } from '../job/balance.tsx';
import { RefusedRecords } from '../refused/refused.tsx';
import { noOptions } from './inspection.ts';
import { isEnded, useLoad } from './load-record.ts';
import { ApplyButton, Progress } from './plan.tsx';

/** What became of the file: the ledger's counts, and below them the records that were refused, to be mended here. */
export function Result({ query, jobId }: { readonly query: Query; readonly jobId: string }): VNode {
  const job = useLoad(jobId);
  const found = job.data?.job_id === jobId ? job.data : undefined;
  if (found === undefined)
    return job.error === null ? <Loading /> : <Problems error={job.error} onRetry={job.reload} />;
  const { counts, failure } = found;
  if (!isEnded(found)) {
    return (
      <>
        <Problems error={job.error} onRetry={job.reload} />
        <Progress job={found} words="Loading" />
      </>
    );
  }
  const another = { ...noOptions, upload: undefined, step: undefined };
  return (
    <>
      <Problems error={job.error} />
      {failure === null ? null : <Notice>{failure.message}</Notice>}
      {failure?.error_code === 'plan_drifted' ? (
        <p class="result-links">
          <ApplyButton query={query} jobId={jobId} onDrift="proceed">
            Load anyway
          </ApplyButton>
          <a
            class="button button-quiet"
            href={query.href({ step: 'columns', plan: undefined, job: undefined })}
          >
            Plan again
          </a>
        </p>
      ) : null}
      <Section title={`${plural(counts.read, 'record')} read`} aside={<StatusBadge status={found.status} />}>
        <Balance jobId={jobId} counts={{ ...counts }} total={found.total_rows} />
        <p class="result-links">
          <a class="button" href={screenHref(`/jobs/${jobId}`)}>
            The job
          </a>
          <a class="button button-quiet" href={query.href(another)}>
            Load another file
          </a>
        </p>
      </Section>
      {counts.rejected + counts.amended > 0 ? (
        <RefusedRecords query={query} job={found} onChange={job.reload} />
      ) : null}
    </>
  );
}
