/*
 * To add a screen to the core, add an entry here, and a file in a folder such as
 * `src/jobs/console/`.
 */
import { parts } from 'sluice:capabilities';
import { type Screen, screen } from '../../console/client/part.ts';

const profiles = () => import('../../profiles/console/profiles.tsx');
const segments = () => import('../../lookups/console/segments.tsx');

const coreScreens: readonly Screen[] = [
  screen('/', () => import('../../jobs/console/overview.tsx'), 'Overview', 'Overview', 'pulse', ''),
  screen('/jobs', () => import('../../jobs/console/jobs.tsx'), 'Jobs', 'Jobs', 'jobs', ''),
  screen('/jobs/:job', () => import('../../jobs/console/job.tsx'), 'Job'),
  screen('/jobs/:job/refused', () => import('../../load/console/refused.tsx'), 'Refused'),
  screen('/people', profiles, 'Users', 'Users', 'people', 'Data'),
  screen('/people/:id', () => import('../../profiles/console/profile.tsx'), 'User'),
  screen('/companies', profiles, 'Companies', 'Companies', 'companies', 'Data'),
  screen('/companies/:id', () => import('../../profiles/console/profile.tsx'), 'Company'),
  screen('/segments', segments, 'Segments', 'Segments', 'segments', 'Data'),
  screen('/segments/new', segments, 'NewSegment'),
  screen('/segments/:id', segments, 'Segment'),
  screen('/export', () => import('../../export/console/export.tsx'), 'Export', 'Export', 'export', 'Out'),
  screen('/access', () => import('../../access/console/access.tsx'), 'Access', 'Access', 'access', 'Service'),
];

export const screens: readonly Screen[] = [
  ...coreScreens,
  ...parts.flatMap(({ screens: list = [] }) => list),
];
