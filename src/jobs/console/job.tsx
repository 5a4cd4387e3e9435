import type { VNode } from 'preact';
import { useRef } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import { screenHref, withQuery } from '../../console/client/lib/address.ts';
import { api } from '../../console/client/lib/api.ts';
import { type Loaded as LoadedData, useData } from '../../console/client/lib/data.ts';
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
import type { JobHistory } from '../../http/job.ts';
import { Balance } from '../../load/console/balance.tsx';
import { Causes } from '../../load/console/causes.tsx';
import { Changes } from '../../load/console/changes.tsx';
import { JobActions } from './actions.tsx';
import { Answer } from './answer.tsx';
import { factsOf } from './facts.tsx';
import { Phases, tookOf } from './timeline.tsx';

const stateKey = ({ status, attempts, end_time }: JobDetail): string => `${status} ${attempts} ${end_time}`;

/**
 * Loads the job from the ledger, then its history. The history is reloaded when the state of the
 * job changes.
 */
function useJob(id: string): LoadedData<JobProps> {
  const path = jobPath(id);
  const latest = useRef<JobProps | null>(null);
  const load = async (signal: AbortSignal): Promise<JobProps> => {
    const job = await api<JobDetail>(path, { signal });
    const previous = latest.current;
    const history =
      previous !== null && stateKey(previous.job) === stateKey(job)
        ? previous.history
        : await api<JobHistory>(`${path}/history`, { signal });
    latest.current = { job, history };
    return latest.current;
  };
  return useData(path, load, (known) => pauseOf(known?.job));
}

export function Job(): VNode {
  const { job: id = '' } = useRoute().params;
  // The key gives each job its own screen, which never shows data of the previous job.
  return <JobOf key={id} id={id} />;
}

function JobOf({ id }: { readonly id: string }): VNode {
  const loaded = useJob(id);
  const { job, history } = loaded.data ?? {};
  return (
    <Page
      title={job === undefined ? 'Job' : visibleText(job.filename)}
      parent={{ title: 'Jobs', href: screenHref('/jobs') }}
      aside={job && stateOf(job)}
      actions={
        job && history && <JobActions key={job.status} job={job} history={history} onDone={loaded.reload} />
      }
    >
      <Loaded of={loaded} rows={10}>
        {(known) => <Shown {...known} />}
      </Loaded>
    </Page>
  );
}

function Shown({ job, history }: JobProps): VNode {
  const isOfLoad = isLoad(job) && job.counts !== undefined;
  const isPlan = job.plan != null && job.plan.applied_at === null;
  return (
    <>
      <Answer job={job} entity={history.parameters['entity']} />
      {isOfLoad && (isUnfinished(job) || job.completed_rows > 0) ? (
        <section class="panel panel-padded" aria-label="Balance">
          <Balance of={job} />
        </section>
      ) : null}
      {isOfLoad && !isUnfinished(job) && (job.rejects?.count ?? 0) > 0 ? (
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
        {job.plan == null || isPlan ? null : (
          <Fold title="Changes">
            <Changes jobId={job.job_id} />
          </Fold>
        )}
        <Fold title="Timeline" aside={tookOf(job, history)}>
          <Phases job={job} history={history} />
        </Fold>
        <Fold title="Details" aside={<span class="faint num">{sizeOf(job)}</span>}>
          <Facts of={factsOf(job, history)} />
        </Fold>
      </div>
    </>
  );
}

function sizeOf({ file_size: size, total_rows: rows }: JobDetail): string {
  return `${size === 0 ? '' : `${formatBytes(size)}, `}${plural(rows, 'row')}`;
}

function stateOf({ status, dry_run, plan }: JobDetail): VNode {
  return (
    <>
      <StatusBadge status={status} />
      {dry_run === true ? <Badge tone="off">{plan == null ? 'dry run' : 'plan'}</Badge> : null}
    </>
  );
}
