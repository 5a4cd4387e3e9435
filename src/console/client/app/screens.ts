/* Every screen of the core and of the capabilities. A new screen of the core is an entry here and a file in `screens/`. */
import { parts } from 'sluice:capabilities';
import { type Screen, screen } from '../part.ts';

const profile = () => import('../screens/profile.tsx');
const profiles = () => import('../screens/profiles.tsx');
const segments = () => import('../screens/segments/segments.tsx');

const ofCore: readonly Screen[] = [
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
  screen('/export', async () => (await import('../screens/export.tsx')).Export, 'Export', 'export', 'Out'),
  screen(
    '/access',
    async () => (await import('../screens/access.tsx')).Access,
    'Access',
    'access',
    'Service',
  ),
];

export const screens: readonly Screen[] = [...ofCore, ...parts.flatMap(({ screens: of = [] }) => of)];
