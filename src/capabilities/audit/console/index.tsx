import { type Part, screen } from '../../../console/client/part.ts';

export const part: Part = {
  screens: [screen('/audit', () => import('./audit.tsx'), 'Audit', 'Audit', 'clock', 'Service')],
};
