import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import { useLocation } from 'preact-iso';
import type { JobHistory } from '../../../../http/job.ts';
import { ownJobTypes } from '../../app/job-types.ts';
import { post } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { isLoad, isUnfinished, type JobDetail, jobHref, jobPath } from '../../lib/jobs.ts';
import { exportOf, exportsPath } from '../../lib/repeat.ts';
import type { JobProps } from '../../part.ts';
import { ActionButton, type ButtonProps, Menu } from '../../ui/controls.tsx';
import { ConfirmButton } from '../../ui/dialog.tsx';

/* What can be done with a job. */

interface Act {
  /** The last part of the path, if it is not the name. */
  readonly action?: string;
  readonly title: string;
  readonly verb: string;
  readonly isPossible: (job: JobDetail) => boolean;
  readonly sentence: (job: JobDetail) => string;
}

const isDestructive = (name: string): boolean => name === 'cancel' || name === 'discard';

/** Says how many rows of the job are not done. */
function leftOf({ total_rows: total, completed_rows: done }: JobDetail): string {
  return `${plural(Math.max(0, total - done), 'row')} of ${formatCount(total)}`;
}

const acts: Readonly<Record<'release' | 'discard' | 'cancel' | 'retry', Act>> = {
  release: {
    title: 'Load it anyway',
    action: 'apply',
    verb: 'Load it anyway',
    isPossible: ({ status }) => status === 'held',
    sentence: (job) =>
      `${plural(job.total_rows, 'row')} will be loaded, although the file differs from what was expected.`,
  },
  discard: {
    title: 'Discard the file',
    action: 'cancel',
    verb: 'Discard it',
    isPossible: ({ status }) => status === 'held',
    sentence: (job) => `Nothing of its ${plural(job.total_rows, 'row')} will be loaded.`,
  },
  cancel: {
    title: 'Cancel the job',
    verb: 'Cancel it',
    isPossible: (job) => isUnfinished(job) && !job.type.startsWith('delete_'),
    sentence: (job) => `${leftOf(job)} will not be processed. What has been applied stays.`,
  },
  retry: {
    title: 'Retry the job',
    verb: 'Retry',
    isPossible: (job) => isLoad(job) && (job.status === 'failed' || job.status === 'cancelled'),
    sentence: (job) => `${leftOf(job)} will be processed. What has been applied is not repeated.`,
  },
};

interface ActionsProps {
  readonly job: JobDetail;
  readonly onDone: () => void;
}

/** Offers what moves the job on from its state. Each asks first, with its number. */
export function JobActs({ job, onDone }: ActionsProps): VNode {
  const names = (Object.keys(acts) as (keyof typeof acts)[]).filter((name) => acts[name].isPossible(job));
  return (
    <>
      {names.map((name) => (
        <ConfirmButton
          key={name}
          label={acts[name].title}
          look={isDestructive(name) ? undefined : 'main'}
          needs={job.type === 'export' ? 'export' : 'import'}
          title={acts[name].title}
          isDestructive={isDestructive(name)}
          sentence={acts[name].sentence(job)}
          verb={acts[name].verb}
          act={async () => {
            await post(`${jobPath(job.job_id)}/${acts[name].action ?? name}`);
            onDone();
          }}
        />
      ))}
    </>
  );
}

/** Writes exactly what the plan shows. Profiles that have changed since refuse it first. */
function Apply({ job: { job_id, type, status, plan, failure }, onDone }: ActionsProps): VNode | null {
  const isDrifted = failure?.error_code === 'plan_drifted';
  if (plan == null || plan.applied_at !== null || !(status === 'completed' || isDrifted)) return null;
  const { inserted, updated, removed } = plan.counts;
  const verb = ownJobTypes.get(type)?.name ?? (isDrifted ? 'Load anyway' : 'Load');
  const apply = async (): Promise<void> => {
    await post(`${jobPath(job_id)}/apply`, { on_drift: isDrifted ? 'proceed' : 'refuse' });
    onDone();
  };
  return (
    <ActionButton look="main" needs="import" act={apply}>
      {verb}: write {plural(inserted + updated + removed, 'record')}
    </ActionButton>
  );
}

/** Offers the actions of a job. Rare ones are in a menu. */
export function JobActions({ job, history, onDone }: ActionsProps & JobProps): VNode {
  return (
    <>
      <Apply job={job} onDone={onDone} />
      <JobActs job={job} onDone={onDone} />
      <Rare job={job} history={history} />
    </>
  );
}

function Rare({ job, history }: JobProps): VNode | null {
  const isOfLoad = isLoad(job);
  if (ownJobTypes.has(job.type) || (!isOfLoad && job.type !== 'export')) return null;
  return (
    <>
      {isOfLoad ? null : <ExportAgain look="main" history={history} />}
      <Menu label="More">
        {parts.map(({ JobMenu }, at) => JobMenu && <JobMenu key={at} job={job} history={history} />)}
      </Menu>
    </>
  );
}

type AgainProps = Pick<ButtonProps, 'look'> & { readonly history: JobHistory };

/** Makes the same export, and shows it. */
export function ExportAgain({ history, look }: AgainProps): VNode {
  const { route } = useLocation();
  const act = async (): Promise<void> => {
    const body = exportOf(history);
    const { job_id } = await post<{ readonly job_id: string }>(exportsPath, body);
    route(jobHref(job_id));
  };
  return (
    <ActionButton look={look} needs="export" act={act}>
      Export again
    </ActionButton>
  );
}
