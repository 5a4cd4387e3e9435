import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { screenHref } from '../../lib/address.ts';
import { api } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { isLoad, isUnfinished, jobPath } from '../../lib/jobs.ts';
import type { JobDetail } from '../../lib/records.ts';
import { ActionButton, Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { addressOf } from '../load/inspection.ts';

interface Act {
  readonly title: string;
  readonly verb: string;
  readonly isPossible: (job: JobDetail) => boolean;
  /** Returns the number of rows that it is about. */
  readonly rows: (job: JobDetail) => number;
  readonly sentence: (job: JobDetail, rows: number) => string;
}

const left = ({ total_rows, completed_rows }: JobDetail): number => Math.max(0, total_rows - completed_rows);
const isDrifted = ({ failure }: JobDetail): boolean => failure?.error_code === 'plan_drifted';

const acts: Readonly<Record<'apply' | 'cancel' | 'retry', Act>> = {
  apply: {
    title: 'Apply the plan',
    verb: 'Apply it',
    isPossible: (job) => job.plan != null && job.plan.applied_at === null && !isUnfinished(job),
    rows: ({ plan }) => (plan?.counts['inserted'] ?? 0) + (plan?.counts['updated'] ?? 0),
    sentence: (job, rows) => {
      const { inserted = 0, updated = 0 } = job.plan?.counts ?? {};
      const drift = isDrifted(job) ? ' Profiles have changed since; it is applied anyway.' : '';
      return `${plural(rows, 'record')} will be written: ${formatCount(inserted)} new, ${formatCount(updated)} changed.${drift}`;
    },
  },
  cancel: {
    title: 'Cancel the job',
    verb: 'Cancel it',
    isPossible: (job) => isUnfinished(job) && !job.type.startsWith('delete_'),
    rows: left,
    sentence: (job, rows) =>
      `${plural(rows, 'row')} of ${formatCount(job.total_rows)} will not be done. What has been applied stays.`,
  },
  retry: {
    title: 'Retry the job',
    verb: 'Retry',
    isPossible: (job) => isLoad(job) && (job.status === 'failed' || job.status === 'cancelled'),
    rows: left,
    sentence: (job, rows) =>
      `${plural(rows, 'row')} of ${formatCount(job.total_rows)} are left and will be done. What has been applied is not done again.`,
  },
};

interface TakenAgain {
  readonly upload_id: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Leads to the columns of the job's file, which the server has stored: nothing is sent again, and nothing is loaded yet. */
function LoadAgain({ job }: { readonly job: JobDetail }): VNode {
  const { route } = useLocation();
  const take = async (): Promise<void> => {
    const { upload_id, options } = await api<TakenAgain>(`${jobPath(job.job_id)}/upload`, { method: 'POST' });
    const { entity, ...others } = options;
    // The columns of a table say what its rows are: with another mapping the same file may be one of companies.
    const given = others['format'] === 'csv' ? others : { entity, ...others };
    route(screenHref('/load', { ...addressOf(given), upload: upload_id, step: 'columns' }));
  };
  return (
    <ActionButton needs="import" act={take}>
      Load again with another mapping
    </ActionButton>
  );
}

/** Offers the actions for the job's current state. Each asks first, with its number. */
export function JobActions({ job, onDone }: { readonly job: JobDetail; readonly onDone: () => void }): VNode {
  const [asked, setAsked] = useState<keyof typeof acts | null>(null);
  const path = jobPath(job.job_id);
  const names = (['apply', 'cancel', 'retry'] as const).filter((name) => acts[name].isPossible(job));
  return (
    <>
      {names.map((name) => (
        <Button
          key={name}
          {...(name === 'cancel' ? {} : { look: 'main' })}
          needs={job.type === 'export' ? 'export' : 'import'}
          onClick={() => setAsked(name)}
        >
          {acts[name].title}
        </Button>
      ))}
      {isLoad(job) && job.amends == null ? <LoadAgain job={job} /> : null}
      {asked === null ? null : (
        <Confirm
          title={acts[asked].title}
          isDestructive={asked === 'cancel'}
          mayBeNone={() => true}
          count={async (signal) => acts[asked].rows(await api<JobDetail>(path, { signal }))}
          sentence={(rows) => acts[asked].sentence(job, rows)}
          verb={() => acts[asked].verb}
          act={async () => {
            const proceed = asked === 'apply' && isDrifted(job) ? { body: { on_drift: 'proceed' } } : {};
            await api(`${path}/${asked}`, { method: 'POST', ...proceed });
            onDone();
          }}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  );
}
