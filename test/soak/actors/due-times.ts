import type { Sql, Tenant } from '../site/site.ts';

/** What a schedule is due at, and what is to be done about due times that nobody was there for. */
export interface Clockwork {
  readonly name: string;
  readonly missed: 'run_all' | 'run_once' | 'skip';
  readonly overlap: 'skip' | 'wait';
  /** Ascending, in ms since 1970. The first ones passed before the schedule was put into force. */
  readonly due: readonly number[];
}

interface Run {
  readonly due_at: Date;
  readonly status: string;
  readonly cause: string;
  readonly missed: number;
  readonly reason_code: string | null;
  readonly reason: string | null;
}

const goodEnds = ['completed', 'completed_with_rejects', 'unchanged'];

/**
 * Every due time up to `until` has one run, or a later one that says that it stands for it; all have ended, well or for a
 * reason that a fault explains; and what was missed at the beginning is dealt with as configured.
 */
export async function checkDueTimes(
  sql: Sql,
  { environmentId }: Tenant,
  clockwork: Clockwork,
  until: number,
): Promise<string[]> {
  const { name, due } = clockwork;
  const runs = await sql<Run>(
    `select due_at, status, cause, missed, reason_code, reason from sluice.schedule_runs
     where environment_id = $1 and schedule_name = $2 order by due_at`,
    [environmentId, name],
  );
  const problems: string[] = [];
  let next = 0;
  for (const run of runs) {
    const what = `${name}, due at ${run.due_at.toISOString()},`;
    const place = due.indexOf(run.due_at.getTime(), next);
    if (place < 0) problems.push(`${what} was not due`);
    else {
      if (place - next !== run.missed) {
        problems.push(
          `${what} stands for ${run.missed} due times before it, of ${place - next} without a run`,
        );
      }
      next = place + 1;
    }
    if (!endedWell(clockwork, run))
      problems.push(`${what} is ${run.status}: ${run.reason_code} ${run.reason}`);
  }
  const left = due.slice(next).filter((at) => at <= until);
  if (left.length > 0)
    problems.push(`${name} has no run for ${left.map((at) => new Date(at).toISOString())}`);
  const [first] = runs;
  if (first !== undefined && !isAsConfigured[clockwork.missed](first)) {
    problems.push(`${name} was missed, and made ${JSON.stringify(first)} of it`);
  }
  return problems;
}

function endedWell({ missed, overlap }: Clockwork, { status, reason_code }: Run): boolean {
  if (status === 'skipped') {
    return (
      (reason_code === 'overlap' && overlap === 'skip') || (reason_code === 'missed' && missed === 'skip')
    );
  }
  // After five lost workers a run, or its export, is given up, and says so.
  return goodEnds.includes(status) || (status === 'failed' && reason_code === 'worker_lost');
}

const isAsConfigured: Readonly<Record<Clockwork['missed'], (run: Run) => boolean>> = {
  run_all: ({ cause, missed }) => cause === 'made_up' && missed === 0,
  run_once: ({ cause, missed, reason_code }) =>
    reason_code !== 'missed' && (cause === 'made_up' || missed > 0),
  skip: ({ status, reason_code }) => status === 'skipped' && reason_code === 'missed',
};
