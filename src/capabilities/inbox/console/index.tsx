import { screenHref } from '../../../console/client/lib/address.ts';
import { type Part, screen } from '../../../console/client/part.ts';

export const part: Part = {
  screens: [screen('/inbox', () => import('./inbox.tsx'), 'Inbox', 'Inbox', 'tray', 'In')],
  needs: {
    inbox_files_refused: () => ['See why', screenHref('/inbox')],
    inbox_files_with_rejects: () => ['See them', screenHref('/inbox')],
  },
};
