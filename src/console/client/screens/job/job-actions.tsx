import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { api, mayUse } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { isLoad, isUnfinished, type JobDetail } from '../../lib/job-record.ts';
import { screenHref } from '../../lib/place.ts';
import { useAction } from '../../lib/use-data.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { Problems } from '../../ui/problems.tsx';
import { addressOf } from '../load/inspection.ts';

type Act = 'cancel' | 'retry' | 'apply';

interface Wording {
  readonly title: string;
  readonly verb: string;
  readonly sentence: (job: JobDetail, rows: number) => string;
  /** The number that it is about, as the server has it at this moment. */
  readonly rows: (job: JobDetail) => number;
}

const left = ({ total_rows, completed_rows }: JobDetail): number => Math.max(0, total_rows - completed_rows);

const wordings: Readonly<Record<Act, Wording>> = {
  cancel: {
    title: 'Cancel the job',
    verb: 'Cancel it',
    rows: left,
    sentence: (job, rows) =>
      `${plural(rows, 'row')} of ${formatCount(job.total_rows)} will not be done. What has been applied stays.`,
  },
  retry: {
    title: 'Retry the job',
    verb: 'Retry',
    rows: left,
    sentence: (job, rows) =>
      `${plural(rows, 'row')} of ${formatCount(job.total_rows)} are left and will be done. What has been applied is not done again.`,
  },
  apply: {
    title: 'Apply the plan',
    verb: 'Apply it',
    rows: ({ plan }) => (plan?.counts['inserted'] ?? 0) + (plan?.counts['updated'] ?? 0),
    sentence: ({ plan, failure }, rows) =>
      `${plural(rows, 'record')} will be written: ${formatCount(plan?.counts['inserted'] ?? 0)} new, ${formatCount(plan?.counts['updated'] ?? 0)} changed.${failure?.error_code === 'plan_drifted' ? ' Profiles have changed since; it is applied anyway.' : ''}`,
  },
};

/** To the columns of its file, which the server has stored: nothing is sent again, and nothing is loaded yet. */
function LoadAgain({ job }: { readonly job: JobDetail }): VNode {
  const { route } = useLocation();
  const take = useAction(async () => {
    const path = `/v1/background_jobs/${job.job_id}/upload`;
    const taken = await api<TakenAgain>(path, { method: 'POST' });
    const { entity, ...options } = taken.options;
    // In a table the columns decide it: with another mapping the same file may be one of companies.
    const said = options['format'] === 'csv' ? options : { entity, ...options };
    route(screenHref('/load', { ...addressOf(said), upload: taken.upload_id, step: 'columns' }));
  });
  return (
    <>
      <button
        type="button"
        class="button"
        disabled={take.isRunning || !mayUse('import')}
        title={mayUse('import') ? undefined : 'Needs a key with the scope import'}
        onClick={() => void take.run()}
      >
        Load again with another mapping
      </button>
      <Problems error={take.error} />
    </>
  );
}

interface TakenAgain {
  readonly upload_id: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** What can be done with the job as it stands; each that changes something asks first, with its number. */
export function JobActions({ job, onDone }: { readonly job: JobDetail; readonly onDone: () => void }): VNode {
  const [asked, setAsked] = useState<Act | null>(null);
  const path = `/v1/background_jobs/${job.job_id}`;
  const scope = job.type === 'export' ? 'export' : 'import';
  const mayAct = mayUse('import') && mayUse(scope);
  const able: readonly Act[] = [
    ...(job.plan != null && job.plan.applied_at === null && !isUnfinished(job) ? (['apply'] as const) : []),
    ...(isUnfinished(job) && !job.type.startsWith('delete_') ? (['cancel'] as const) : []),
    ...(isLoad(job) && (job.status === 'failed' || job.status === 'cancelled') ? (['retry'] as const) : []),
  ];
  return (
    <>
      {able.map((act) => (
        <button
          key={act}
          type="button"
          class={act === 'cancel' ? 'button' : 'button button-main'}
          disabled={!mayAct}
          title={mayAct ? undefined : `Needs a key with the scope ${scope}`}
          onClick={() => setAsked(act)}
        >
          {wordings[act].title}
        </button>
      ))}
      {isLoad(job) && job.amends == null ? <LoadAgain job={job} /> : null}
      {asked === null ? null : (
        <Confirm
          title={wordings[asked].title}
          isDestructive={asked === 'cancel'}
          mayBeNone={() => true}
          count={async (signal) => wordings[asked].rows(await api<JobDetail>(path, { signal }))}
          sentence={(rows) => wordings[asked].sentence(job, rows)}
          verb={() => wordings[asked].verb}
          act={async () => {
            const isDrifted = asked === 'apply' && job.failure?.error_code === 'plan_drifted';
            const body = isDrifted ? { body: { on_drift: 'proceed' } } : {};
            await api(`${path}/${asked}`, { method: 'POST', ...body });
            onDone();
          }}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  );
}
