/*
 * Every screen: its path, its code, which is loaded when it is first shown, and its place in the navigation. A new screen is
 * an entry here and a file in `screens/`.
 */
import type { AnyComponent } from 'preact';
import { lazy } from 'preact-iso';
import type { IconName } from '../ui/drawings.tsx';

export const navGroups = ['', 'In', 'Out', 'Data', 'Service'] as const;

type Nav = readonly [title: string, icon: IconName, group: (typeof navGroups)[number]];

export interface Screen {
  /** Below /console; `:name` is a parameter, which `useRoute().params` has. */
  readonly path: string;
  readonly component: AnyComponent;
  /** Its place in the navigation. A screen without it belongs to the one whose path begins its own. */
  readonly nav: Nav | undefined;
}

function screen(path: string, load: () => Promise<AnyComponent>, ...nav: Nav | []): Screen {
  // The router would wait for ever for code that cannot be loaded.
  const orThrow = (error: unknown) => (): never => {
    throw error;
  };
  return { path, component: lazy(() => load().catch(orThrow)), nav: nav.length === 0 ? undefined : nav };
}

const editSchedule = () => import('../screens/edit-schedule.tsx');
const profile = () => import('../screens/profile.tsx');
const profiles = () => import('../screens/profiles.tsx');
const schedules = () => import('../screens/schedules.tsx');
const segments = () => import('../screens/segments/segments.tsx');

export const screens: readonly Screen[] = [
  screen('/', async () => (await import('../screens/overview.tsx')).Overview, 'Overview', 'pulse', ''),
  screen('/jobs', async () => (await import('../screens/jobs.tsx')).Jobs, 'Jobs', 'jobs', ''),
  screen('/jobs/:job', async () => (await import('../screens/job/job.tsx')).Job),
  screen('/jobs/:job/refused', async () => (await import('../screens/refused/refused.tsx')).Refused),
  screen('/people', async () => (await profiles()).Users, 'Users', 'people', 'Data'),
  screen('/people/:id', async () => (await profile()).User),
  screen('/companies', async () => (await profiles()).Companies, 'Companies', 'companies', 'Data'),
  screen('/companies/:id', async () => (await profile()).Company),
  screen('/segments', async () => (await segments()).Segments, 'Segments', 'segments', 'Data'),
  screen('/segments/new', async () => (await import('../screens/segments/editor.tsx')).NewSegment),
  screen('/segments/:id', async () => (await segments()).Segment),
  screen('/rules', async () => (await import('../screens/rules.tsx')).Rules, 'Rules', 'segments', 'Data'),
  screen('/export', async () => (await import('../screens/export.tsx')).Export, 'Export', 'export', 'Out'),
  screen('/load', async () => (await import('../screens/load/load.tsx')).Load, 'Load a file', 'load', 'In'),
  screen('/schedules', async () => (await schedules()).Schedules, 'Schedules', 'schedules', 'In'),
  screen('/schedules/-/new', async () => (await editSchedule()).NewSchedule),
  screen('/schedules/:schedule', async () => (await schedules()).ScheduleRuns),
  screen('/inbox', async () => (await import('../screens/inbox.tsx')).Inbox, 'Inbox', 'inbox', 'In'),
  screen(
    '/access',
    async () => (await import('../screens/access.tsx')).Access,
    'Access',
    'access',
    'Service',
  ),
];
