import type { VNode } from 'preact';
import { useLocation } from 'preact-iso';
import { post, screenHref } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { isLoad, isUnfinished, type JobDetail, jobPath } from '../../lib/jobs.ts';
import { ActionButton } from '../../ui/controls.tsx';
import { ConfirmButton } from '../../ui/dialog.tsx';
import { addressOf } from '../load/inspection.ts';

interface Act {
  readonly title: string;
  readonly verb: string;
  readonly isPossible: (job: JobDetail) => boolean;
  readonly sentence: (job: JobDetail) => string;
}

const isDrifted = ({ failure }: JobDetail): boolean => failure?.error_code === 'plan_drifted';

/** Says how many rows of the job are not done. */
function leftOf({ total_rows: total, completed_rows: done }: JobDetail): string {
  return `${plural(Math.max(0, total - done), 'row')} of ${formatCount(total)}`;
}

const acts: Readonly<Record<'apply' | 'cancel' | 'retry', Act>> = {
  apply: {
    title: 'Apply the plan',
    verb: 'Apply it',
    isPossible: (job) => job.plan != null && job.plan.applied_at === null && !isUnfinished(job),
    sentence: (job) => {
      const { inserted = 0, updated = 0 } = job.plan?.counts ?? {};
      const drift = isDrifted(job) ? ' Profiles have changed since; it is applied anyway.' : '';
      return `${plural(inserted + updated, 'record')} will be written: ${formatCount(inserted)} new, ${formatCount(updated)} changed.${drift}`;
    },
  },
  cancel: {
    title: 'Cancel the job',
    verb: 'Cancel it',
    isPossible: (job) => isUnfinished(job) && !job.type.startsWith('delete_'),
    sentence: (job) => `${leftOf(job)} will not be done. What has been applied stays.`,
  },
  retry: {
    title: 'Retry the job',
    verb: 'Retry',
    isPossible: (job) => isLoad(job) && (job.status === 'failed' || job.status === 'cancelled'),
    sentence: (job) => `${leftOf(job)} are left and will be done. What has been applied is not done again.`,
  },
};

interface TakenAgain {
  readonly upload_id: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Offers the actions for the job's current state. Each asks first, with its number. */
export function JobActions({ job, onDone }: { readonly job: JobDetail; readonly onDone: () => void }): VNode {
  const { route } = useLocation();
  const path = jobPath(job.job_id);
  const names = (['apply', 'cancel', 'retry'] as const).filter((name) => acts[name].isPossible(job));
  // Leads to the columns of the file, which the server has stored: nothing is sent again, and nothing is loaded yet.
  const loadAgain = async (): Promise<void> => {
    const { upload_id, options } = await post<TakenAgain>(`${path}/upload`);
    const { entity, ...others } = options;
    // The columns of a table say what its rows are: with another mapping the same file may be one of companies.
    const given = others['format'] === 'csv' ? others : { entity, ...others };
    route(screenHref('/load', { ...addressOf(given), upload: upload_id, step: 'columns' }));
  };
  return (
    <>
      {names.map((name) => (
        <ConfirmButton
          key={name}
          label={acts[name].title}
          {...(name === 'cancel' ? {} : { look: 'main' })}
          needs={job.type === 'export' ? 'export' : 'import'}
          title={acts[name].title}
          isDestructive={name === 'cancel'}
          sentence={() => acts[name].sentence(job)}
          verb={() => acts[name].verb}
          act={async () => {
            await post(
              `${path}/${name}`,
              name === 'apply' && isDrifted(job) ? { on_drift: 'proceed' } : undefined,
            );
            onDone();
          }}
        />
      ))}
      {isLoad(job) && job.amends == null ? (
        <ActionButton needs="import" act={loadAgain}>
          Load again with another mapping
        </ActionButton>
      ) : null}
    </>
  );
}
