import type { VNode } from 'preact';
import { useRoute } from 'preact-iso';
import type { JobDetail as LoadDetail } from '../../../../load/api.ts';
import { apiHref, useQuery, withQuery } from '../../lib/address.ts';
import { useApi } from '../../lib/data.ts';
import { visibleText } from '../../lib/format.ts';
import { jobHref, jobPath, pauseOf } from '../../lib/jobs.ts';
import { Empty, Loaded, Page, StatusBadge } from '../../ui/page.tsx';
import { Causes } from './causes.tsx';
import { Grid, type RefusedProps } from './grid.tsx';

/** Shows the records that a load refused. Corrected, they are loaded as a file of their own. */
export function Refused(): VNode {
  const { job: id = '' } = useRoute().params;
  const query = useQuery();
  const job = useApi<LoadDetail>(jobPath(id), pauseOf);
  return (
    <Page
      title="Refused records"
      parent={{ title: visibleText(job.data?.filename ?? 'Job'), href: jobHref(id) }}
      aside={job.data === undefined ? null : <StatusBadge status={job.data.status} />}
    >
      <Loaded of={job}>
        {(data) =>
          data.counts.rejected === 0 ? none : <Records query={query} job={data} onChange={job.reload} />
        }
      </Loaded>
    </Page>
  );
}

const none = <Empty title="No record was refused" />;

function Records({ query, job, onChange }: RefusedProps): VNode {
  const cause = query.get('cause');
  return (
    <>
      <Causes
        job={job}
        title="Why they were refused"
        aside={<Download job={job} />}
        chosen={cause}
        hrefOf={(id) => query.href({ cause: id === cause ? undefined : id, cursor: undefined })}
      />
      <Grid query={query} job={job} onChange={onChange} />
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
