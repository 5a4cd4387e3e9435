import type { VNode } from 'preact';
import { formatMs, plural } from '../../../console/client/lib/format.ts';
import {
  isLoad,
  isUnfinished,
  type JobDetail,
  jobPath,
  type LoadJob,
  useStart,
  workMs,
} from '../../../console/client/lib/jobs.ts';
import type { JobProps, Part } from '../../../console/client/part.ts';
import { ActionButton } from '../../../console/client/ui/controls.tsx';
import { type Fact, JobLink } from '../../../console/client/ui/page.tsx';
import type { UndoFields } from '../api.ts';

export const part: Part = {
  jobTypes: { undo: { name: 'Undo', outcome: outcomeText } },
  jobFacts: (job) => {
    const { undoes = [], undone_by: undoneBy, undo } = fieldsOf(job);
    return [
      ...undoes.map((id): Fact => ['Undoes', <JobLink key={id} id={id} />]),
      ['Undone by', undoneBy && <JobLink id={undoneBy} />],
      ['Kept because newer', undo && plural(undo.kept, 'profile')],
      ...(undo?.later_loads ?? []).map((id): Fact => ['Found the same values', <JobLink key={id} id={id} />]),
    ];
  },
  jobLinks: (job) => {
    const { undone_by: undoneBy } = fieldsOf(job);
    return undoneBy == null ? null : (
      <span>
        Undone by <JobLink id={undoneBy} />
      </span>
    );
  },
  JobMenu: Undo,
};

function fieldsOf(job: LoadJob): Partial<UndoFields> {
  return job as Partial<UndoFields>;
}

function outcomeText(job: LoadJob): string {
  const { inserted, updated, removed } = job.counts;
  const kept = fieldsOf(job).undo?.kept ?? 0;
  const stay = kept === 0 ? '' : `; ${plural(kept, 'profile')} kept because newer`;
  return `${plural(inserted + updated + removed, 'profile')} put back in ${formatMs(workMs(job))}${stay}`;
}

function isUndoable(job: JobDetail): boolean {
  if (!isLoad(job)) return false;
  const { inserted, updated, removed } = job.counts;
  const hasWritten = !job.dry_run && inserted + updated + removed > 0;
  return !isUnfinished(job) && hasWritten && fieldsOf(job).undone_by == null;
}

/** Opens a plan of the undo, which the user can then apply. */
function Undo({ job }: JobProps): VNode | null {
  const start = useStart();
  if (!isUndoable(job)) return null;
  return (
    <ActionButton
      look="quiet"
      scopes="import"
      act={() => start(`${jobPath(job.job_id)}/undo`, { plan: true })}
    >
      Undo …
    </ActionButton>
  );
}
