import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import { post } from '../../console/client/lib/api.ts';
import { formatCount, plural } from '../../console/client/lib/format.ts';
import {
  isLoad,
  isUnfinished,
  type JobDetail,
  jobPath,
  type LoadJob,
} from '../../console/client/lib/jobs.ts';
import type { JobProps } from '../../console/client/part.ts';
import { ActionButton, Menu } from '../../console/client/ui/controls.tsx';
import { ConfirmButton } from '../../console/client/ui/dialog.tsx';
import { ExportAgain } from '../../export/console/job.tsx';
import { ownJobTypes } from './job-types.ts';

interface Act {
  readonly path: string;
  readonly title: string;
  readonly verb: string;
  readonly isDestructive?: boolean;
  readonly isPossible: (job: JobDetail) => boolean;
  readonly sentence: (job: JobDetail) => string;
}

function leftOf({ total_rows: total, completed_rows: completed }: JobDetail): string {
  return `${plural(Math.max(0, total - completed), 'row')} of ${formatCount(total)}`;
}

const acts: readonly Act[] = [
  {
    path: 'apply',
    title: 'Load it anyway',
    verb: 'Load it anyway',
    isPossible: ({ status }) => status === 'held',
    sentence: (job) =>
      `${plural(job.total_rows, 'row')} will be loaded, although the file differs from what was expected.`,
  },
  {
    path: 'cancel',
    title: 'Discard the file',
    verb: 'Discard it',
    isDestructive: true,
    isPossible: ({ status }) => status === 'held',
    sentence: (job) => `Nothing of its ${plural(job.total_rows, 'row')} will be loaded.`,
  },
  {
    path: 'cancel',
    title: 'Cancel the job',
    verb: 'Cancel it',
    isDestructive: true,
    isPossible: (job) => isUnfinished(job) && !job.type.startsWith('delete_'),
    sentence: (job) => `${leftOf(job)} will not be processed. What has been applied stays.`,
  },
  {
    path: 'retry',
    title: 'Retry the job',
    verb: 'Retry',
    isPossible: (job) => isLoad(job) && (job.status === 'failed' || job.status === 'cancelled'),
    sentence: (job) => `${leftOf(job)} will be processed. What has been applied is not repeated.`,
  },
];

interface ActionsProps {
  readonly job: JobDetail;
  readonly onDone: () => void;
}

/** Each button asks for confirmation and shows how many rows are affected. */
export function JobActs({ job, onDone }: ActionsProps): VNode {
  const possible = acts.filter(({ isPossible }) => isPossible(job));
  return (
    <>
      {possible.map(({ path, title, verb, isDestructive = false, sentence }) => (
        <ConfirmButton
          key={title}
          label={title}
          look={isDestructive ? undefined : 'main'}
          scopes={job.type === 'export' ? 'export' : 'import'}
          title={title}
          isDestructive={isDestructive}
          sentence={sentence(job)}
          verb={verb}
          act={() => post(`${jobPath(job.job_id)}/${path}`).then(onDone)}
        />
      ))}
    </>
  );
}

/** If profiles have changed since the plan was made, the server refuses to apply the plan. */
function Apply({ job, onDone }: ActionsProps & { readonly job: LoadJob }): VNode | null {
  const { job_id, type, status, plan, failure } = job;
  const isDrifted = failure?.error_code === 'plan_drifted';
  if (plan === null || plan.applied_at !== null || !(status === 'completed' || isDrifted)) return null;
  const { inserted, updated, removed } = plan.counts;
  const verb = ownJobTypes.get(type)?.name ?? (isDrifted ? 'Load anyway' : 'Load');
  const apply = () =>
    post(`${jobPath(job_id)}/apply`, { on_drift: isDrifted ? 'proceed' : 'refuse' }).then(onDone);
  return (
    <ActionButton look="main" scopes="import" act={apply}>
      {verb}: write {plural(inserted + updated + removed, 'record')}
    </ActionButton>
  );
}

export function JobActions({ job, onDone }: ActionsProps & JobProps): VNode {
  const hasMenu = job.type === 'export' || (isLoad(job) && !ownJobTypes.has(job.type));
  return (
    <>
      {isLoad(job) ? <Apply job={job} onDone={onDone} /> : null}
      <JobActs job={job} onDone={onDone} />
      {job.type === 'export' ? <ExportAgain look="main" job={job} /> : null}
      {hasMenu ? (
        <Menu label="More">{parts.map(({ JobMenu }, at) => JobMenu && <JobMenu key={at} job={job} />)}</Menu>
      ) : null}
    </>
  );
}
