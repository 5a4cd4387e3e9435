import type { VNode } from 'preact';
import { useRoute } from 'preact-iso';
import { screenHref, withQuery } from '../../console/client/lib/address.ts';
import { useApi } from '../../console/client/lib/data.ts';
import { formatBytes, plural, visibleText } from '../../console/client/lib/format.ts';
import {
  isLoad,
  isUnfinished,
  type JobDetail,
  jobPath,
  pauseOf,
  refusedHref,
} from '../../console/client/lib/jobs.ts';
import type { JobProps } from '../../console/client/part.ts';
import { Badge, Facts, Fold, Loaded, Page, StatusBadge } from '../../console/client/ui/page.tsx';
import { ExportFiles } from '../../export/console/job.tsx';
import { Balance } from '../../load/console/balance.tsx';
import { Causes } from '../../load/console/causes.tsx';
import { Changes } from '../../load/console/changes.tsx';
import { JobActions } from './actions.tsx';
import { Answer } from './answer.tsx';
import { factsOf, Phases, tookOf } from './facts.tsx';

export function Job(): VNode {
  const { job: id = '' } = useRoute().params;
  // Without the attribute `key`, the page would briefly show the data of the previous job.
  return <JobOf key={id} id={id} />;
}

function JobOf({ id }: { readonly id: string }): VNode {
  const loaded = useApi<JobDetail>(jobPath(id), pauseOf);
  const job = loaded.data;
  return (
    <Page
      title={job === undefined ? 'Job' : visibleText(job.filename)}
      parent={{ title: 'Jobs', href: screenHref('/jobs') }}
      aside={job && stateOf(job)}
      actions={job && <JobActions key={job.status} job={job} onDone={loaded.reload} />}
    >
      <Loaded of={loaded} rows={10}>
        {(known) => <Shown job={known} />}
      </Loaded>
    </Page>
  );
}

function Shown({ job }: JobProps): VNode {
  const plan = isLoad(job) ? job.plan : null;
  const isPlan = plan !== null && plan.applied_at === null;
  return (
    <>
      <Answer job={job} />
      {isLoad(job) && (isUnfinished(job) || job.completed_rows > 0) ? (
        <section class="panel panel-padded" aria-label="Balance">
          <Balance of={job} />
        </section>
      ) : null}
      {isLoad(job) && !isUnfinished(job) && job.rejects.count > 0 ? (
        <Causes
          job={job}
          title="Why records were rejected"
          aside={<a href={refusedHref(job.job_id)}>Correct them</a>}
          hrefOf={(cause) => withQuery(refusedHref(job.job_id), { cause })}
        />
      ) : null}
      {isPlan ? <Changes jobId={job.job_id} /> : null}
      {job.type === 'export' ? <ExportFiles job={job} /> : null}
      <div>
        {plan === null || isPlan ? null : (
          <Fold title="Changes">
            <Changes jobId={job.job_id} />
          </Fold>
        )}
        <Fold title="Timeline" aside={tookOf(job)}>
          <Phases job={job} />
        </Fold>
        <Fold title="Details" aside={<span class="faint num">{sizeOf(job)}</span>}>
          <Facts of={factsOf(job)} />
        </Fold>
      </div>
    </>
  );
}

function sizeOf({ file_size: size, total_rows: rows }: JobDetail): string {
  return `${size === 0 ? '' : `${formatBytes(size)}, `}${plural(rows, 'row')}`;
}

function stateOf(job: JobDetail): VNode {
  return (
    <>
      <StatusBadge status={job.status} />
      {isLoad(job) && job.dry_run ? <Badge tone="off">{job.plan === null ? 'dry run' : 'plan'}</Badge> : null}
    </>
  );
}
