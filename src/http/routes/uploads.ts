import { render } from '../../api/render.ts';
import { uploadOfLoad } from '../../api/upload.ts';
import { keepFileOfLoad } from '../../load/retry-load.ts';
import { jobParameters } from '../parameters.ts';
import { type Route, route } from '../route.ts';

const ofLoad = route({
  at: 'POST /v1/background_jobs/:job_id/upload',
  operationId: 'loadAgain',
  summary: 'Create an upload from the file of a load',
  description:
    'Creates an upload from the stored file of a load, to inspect and load it with other options, such as another `map`. Nothing is sent or copied. The upload expires after a day, or with the stored file.',
  access: 'import',
  params: jobParameters,
  answer: { status: 201, description: 'The upload, and how the job read it.', schema: uploadOfLoad.ref },
  refuses: ['job_expired', 'job_not_retryable'],
  handle: async ({ system, params, environment }) => {
    const { upload, options } = await keepFileOfLoad(system, environment, params.job_id);
    const { isGzip: _, ref: __, ...shown } = upload;
    return { ...render(shown), options };
  },
});

export const uploadRoutes: readonly Route[] = [ofLoad];
