import { screenHref } from '../../../console/client/lib/address.ts';
import { type Part, screen } from '../../../console/client/part.ts';

export const part: Part = {
  screens: [
    screen('/schedules', () => import('./schedules.tsx'), 'Schedules', 'Schedules', 'clock', 'In'),
    screen('/schedules/-/new', () => import('./edit-schedule.tsx'), 'NewSchedule'),
    screen('/schedules/:schedule', () => import('./schedules.tsx'), 'ScheduleRuns'),
  ],
  needs: {
    schedules_failing: (name) => ['See why', screenHref(name === null ? '/schedules' : `/schedules/${name}`)],
    runs_skipped: () => ['See them', screenHref('/schedules')],
  },
  // With truncated options, a schedule would not do the same as the job.
  JobMenu: ({ job: { job_id, status, options_cut } }) =>
    status === 'completed' && !options_cut ? (
      <a class="button button-quiet" href={screenHref('/schedules/-/new', { from: job_id })}>
        Schedule …
      </a>
    ) : null,
};
