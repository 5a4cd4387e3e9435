/*
 * Every screen: its path, its code, which is loaded when it is first shown, and its place in the navigation. A new screen is
 * an entry here and a file in `screens/`.
 */
import type { AnyComponent } from 'preact';
import { lazy } from 'preact-iso';
import type { IconName } from '../ui/icons.tsx';

export const navGroups = ['', 'In', 'Out', 'Data', 'Service'] as const;
export type NavGroup = (typeof navGroups)[number];

interface NavEntry {
  readonly title: string;
  readonly icon: IconName;
  readonly group: NavGroup;
  /** Pressed after `g`. */
  readonly key: string;
}

export interface Screen {
  /** Below /console; `:name` is a parameter, which `useRoute().params` has. */
  readonly path: string;
  readonly component: AnyComponent;
  /** A screen without an entry belongs to the one whose path begins its own. */
  readonly nav?: NavEntry;
}

type Nav = readonly [title: string, icon: IconName, group: NavGroup, key: string];

function screen(path: string, load: () => Promise<AnyComponent>, nav?: Nav): Screen {
  if (nav === undefined) return { path, component: lazy(load) };
  const [title, icon, group, key] = nav;
  return { path, component: lazy(load), nav: { title, icon, group, key } };
}

export const screens: readonly Screen[] = [
  screen('/', async () => (await import('../screens/pulse.tsx')).Pulse, ['Pulse', 'pulse', '', 'h']),
  screen('/live', async () => (await import('../screens/live/live.tsx')).Live, ['Live', 'live', '', 'v']),
  screen('/jobs', async () => (await import('../screens/jobs.tsx')).Jobs, ['Jobs', 'jobs', '', 'j']),
  screen('/jobs/:job', async () => (await import('../screens/job/job.tsx')).Job),
  screen('/jobs/:job/refused', async () => (await import('../screens/refused/refused.tsx')).Refused),
  screen('/people', async () => (await import('../screens/profiles/profiles.tsx')).Users, [
    'Users',
    'people',
    'Data',
    'u',
  ]),
  screen('/people/:id', async () => (await import('../screens/profiles/profile.tsx')).User),
  screen('/companies', async () => (await import('../screens/profiles/profiles.tsx')).Companies, [
    'Companies',
    'companies',
    'Data',
    'c',
  ]),
  screen('/companies/:id', async () => (await import('../screens/profiles/profile.tsx')).Company),
  screen('/segments', async () => (await import('../screens/segments.tsx')).Segments, [
    'Segments',
    'segments',
    'Data',
    's',
  ]),
  screen('/segments/:id', async () => (await import('../screens/segments.tsx')).Segment),
  screen('/export', async () => (await import('../screens/export/export.tsx')).Export, [
    'Export',
    'export',
    'Out',
    'e',
  ]),
  screen('/export/:job', async () => (await import('../screens/export/export-history.tsx')).ExportFiles),
  screen('/load', async () => (await import('../screens/load/load.tsx')).Load, [
    'Load a file',
    'load',
    'In',
    'l',
  ]),
  screen('/schedules', async () => (await import('../screens/schedules.tsx')).Schedules, [
    'Schedules',
    'schedules',
    'In',
    't',
  ]),
  screen('/schedules/:schedule', async () => (await import('../screens/schedules.tsx')).ScheduleRuns),
  screen('/inbox', async () => (await import('../screens/inbox.tsx')).Inbox, ['Inbox', 'inbox', 'In', 'i']),
  screen('/deliveries', async () => (await import('../screens/deliveries/deliveries.tsx')).Deliveries, [
    'Deliveries',
    'deliveries',
    'Out',
    'd',
  ]),
  screen(
    '/deliveries/:delivery',
    async () => (await import('../screens/deliveries/deliveries.tsx')).Delivered,
  ),
  screen('/access', async () => (await import('../screens/access.tsx')).Access, [
    'Access',
    'access',
    'Service',
    'a',
  ]),
];
