/* Every screen of the core and of the capabilities. A new screen of the core is an entry here and a file in `screens/`. */
import { parts } from 'sluice:capabilities';
import { type Screen, screen } from '../part.ts';

const profiles = () => import('../screens/profiles.tsx');
const segments = () => import('../screens/segments.tsx');

const ofCore: readonly Screen[] = [
  screen('/', () => import('../screens/overview.tsx'), 'Overview', 'Overview', 'pulse', ''),
  screen('/jobs', () => import('../screens/jobs.tsx'), 'Jobs', 'Jobs', 'jobs', ''),
  screen('/jobs/:job', () => import('../screens/job/job.tsx'), 'Job'),
  screen('/jobs/:job/refused', () => import('../screens/refused/refused.tsx'), 'Refused'),
  screen('/people', profiles, 'Users', 'Users', 'people', 'Data'),
  screen('/people/:id', () => import('../screens/profile.tsx'), 'User'),
  screen('/companies', profiles, 'Companies', 'Companies', 'companies', 'Data'),
  screen('/companies/:id', () => import('../screens/profile.tsx'), 'Company'),
  screen('/segments', segments, 'Segments', 'Segments', 'segments', 'Data'),
  screen('/segments/new', segments, 'NewSegment'),
  screen('/segments/:id', segments, 'Segment'),
  screen('/export', () => import('../screens/export.tsx'), 'Export', 'Export', 'export', 'Out'),
  screen('/access', () => import('../screens/access.tsx'), 'Access', 'Access', 'access', 'Service'),
];

export const screens: readonly Screen[] = [...ofCore, ...parts.flatMap(({ screens: of = [] }) => of)];
