import { screenHref } from '../../../console/client/lib/address.ts';
import { type Part, screen } from '../../../console/client/part.ts';

const editSchedule = () => import('./edit-schedule.tsx');
const schedules = () => import('./schedules.tsx');

export const part: Part = {
  screens: [
    screen('/schedules', async () => (await schedules()).Schedules, 'Schedules', 'clock', 'In'),
    screen('/schedules/-/new', async () => (await editSchedule()).NewSchedule),
    screen('/schedules/:schedule', async () => (await schedules()).ScheduleRuns),
  ],
  needs: {
    schedules_failing: (name) => ['See why', screenHref(name === null ? '/schedules' : `/schedules/${name}`)],
    runs_skipped: () => ['See them', screenHref('/schedules')],
  },
  JobMenu: ({ job: { job_id, status } }) =>
    status === 'completed' ? (
      <a class="button button-quiet" href={screenHref('/schedules/-/new', { from: job_id })}>
        Schedule …
      </a>
    ) : null,
};
