import type { VNode } from 'preact';
import { useLocation } from 'preact-iso';
import { screenHref } from '../../../console/client/lib/address.ts';
import { post } from '../../../console/client/lib/api.ts';
import { isLoad, jobPath } from '../../../console/client/lib/jobs.ts';
import { type JobProps, type Part, screen } from '../../../console/client/part.ts';
import { ActionButton } from '../../../console/client/ui/controls.tsx';

export const part: Part = {
  screens: [screen('/load', () => import('./load.tsx'), 'Load', 'Load a file', 'load', 'In')],
  JobMenu: LoadAgain,
  checkPath: '/v1/imports/inspect',
};

type ReusedUpload = Readonly<{ upload_id: string; options: Readonly<Record<string, unknown>> }>;

function LoadAgain({ job }: JobProps): VNode | null {
  const { route } = useLocation();
  // Opens the screen for loads, with the stored file already chosen. The file is neither sent again
  // nor loaded yet.
  const loadAgain = async (): Promise<void> => {
    const { upload_id, options } = await post<ReusedUpload>(`${jobPath(job.job_id)}/upload`);
    const { entity, ...others } = options;
    // In a CSV file, the mapped columns determine the entity, and the user may map other columns.
    const applied = others['format'] === 'csv' ? others : { entity, ...others };
    const texts = Object.entries(applied).map(([name, value]) => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : String(value),
    ]);
    route(screenHref('/load', { ...Object.fromEntries(texts), upload: upload_id }));
  };
  if (!isLoad(job)) return null;
  return (
    <>
      <ActionButton look="quiet" scopes="import" act={loadAgain}>
        Load again with another mapping
      </ActionButton>
      <a class="button button-quiet" href={screenHref('/load', { options_of: job.job_id })}>
        Load another file like this one
      </a>
    </>
  );
}
