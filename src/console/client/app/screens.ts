/*
 * Every screen: its address, its name, where it stands in the navigation, and its code, which is loaded when it is first
 * shown. A new screen is a line here and a file in `screens/`.
 */
import type { AnyComponent } from 'preact';
import { lazy } from 'preact-iso';
import type { IconName } from '../ui/icons.tsx';

export interface Screen {
  /** Below /console; `:name` is a parameter, which `useRoute().params` has. */
  readonly path: string;
  readonly component: AnyComponent;
  /** In the navigation; without it the screen belongs to the one whose path begins its own. */
  readonly nav?: {
    readonly title: string;
    readonly icon: IconName;
    readonly group: NavGroup;
    /** Pressed after `g`. */
    readonly key: string;
  };
}

export const navGroups = ['', 'In', 'Out', 'Data', 'Service'] as const;
export type NavGroup = (typeof navGroups)[number];

export const screens: readonly Screen[] = [
  {
    path: '/',
    component: lazy(() => import('../screens/pulse/pulse.tsx').then(({ Pulse }) => Pulse)),
    nav: { title: 'Pulse', icon: 'pulse', group: '', key: 'h' },
  },
  {
    path: '/live',
    component: lazy(() => import('../screens/live/live.tsx').then(({ Live }) => Live)),
    nav: { title: 'Live', icon: 'live', group: '', key: 'v' },
  },
  {
    path: '/jobs',
    component: lazy(() => import('../screens/jobs/jobs.tsx').then(({ Jobs }) => Jobs)),
    nav: { title: 'Jobs', icon: 'jobs', group: '', key: 'j' },
  },
  {
    path: '/jobs/:job',
    component: lazy(() => import('../screens/job/job.tsx').then(({ Job }) => Job)),
  },
  {
    path: '/jobs/:job/refused',
    component: lazy(() => import('../screens/refused/refused.tsx').then(({ Refused }) => Refused)),
  },
  {
    path: '/people',
    component: lazy(() => import('../screens/profiles.tsx').then(({ Users }) => Users)),
    nav: { title: 'Users', icon: 'people', group: 'Data', key: 'u' },
  },
  {
    path: '/people/:id',
    component: lazy(() => import('../screens/profile.tsx').then(({ User }) => User)),
  },
  {
    path: '/companies',
    component: lazy(() => import('../screens/profiles.tsx').then(({ Companies }) => Companies)),
    nav: { title: 'Companies', icon: 'companies', group: 'Data', key: 'c' },
  },
  {
    path: '/companies/:id',
    component: lazy(() => import('../screens/profile.tsx').then(({ Company }) => Company)),
  },
  {
    path: '/segments',
    component: lazy(() => import('../screens/segments.tsx').then(({ Segments }) => Segments)),
    nav: { title: 'Segments', icon: 'segments', group: 'Data', key: 's' },
  },
  {
    path: '/segments/:id',
    component: lazy(() => import('../screens/segment.tsx').then(({ Segment }) => Segment)),
  },
  {
    path: '/export',
    component: lazy(() => import('../screens/export.tsx').then(({ Export }) => Export)),
    nav: { title: 'Export', icon: 'export', group: 'Out', key: 'e' },
  },
  {
    path: '/export/:job',
    component: lazy(() => import('../screens/export-history.tsx').then(({ ExportFiles }) => ExportFiles)),
  },
  {
    path: '/load',
    component: lazy(() => import('../screens/load/load.tsx').then(({ Load }) => Load)),
    nav: { title: 'Load a file', icon: 'load', group: 'In', key: 'l' },
  },
  {
    path: '/schedules',
    component: lazy(() => import('../screens/schedules.tsx').then(({ Schedules }) => Schedules)),
    nav: { title: 'Schedules', icon: 'schedules', group: 'In', key: 't' },
  },
  {
    path: '/schedules/:schedule',
    component: lazy(() => import('../screens/schedule-runs.tsx').then(({ ScheduleRuns }) => ScheduleRuns)),
  },
  {
    path: '/inbox',
    component: lazy(() => import('../screens/inbox.tsx').then(({ Inbox }) => Inbox)),
    nav: { title: 'Inbox', icon: 'inbox', group: 'In', key: 'i' },
  },
  {
    path: '/deliveries',
    component: lazy(() =>
      import('../screens/deliveries/deliveries.tsx').then(({ Deliveries }) => Deliveries),
    ),
    nav: { title: 'Deliveries', icon: 'deliveries', group: 'Out', key: 'd' },
  },
  {
    path: '/deliveries/:delivery',
    component: lazy(() => import('../screens/deliveries/delivered.tsx').then(({ Delivered }) => Delivered)),
  },
  {
    path: '/access',
    component: lazy(() => import('../screens/access.tsx').then(({ Access }) => Access)),
    nav: { title: 'Access', icon: 'access', group: 'Service', key: 'a' },
  },
];
