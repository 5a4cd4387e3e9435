import { Type } from 'typebox';
import { render } from '../../api/render.ts';
import {
  exampleUploadId,
  type Upload as UploadRecord,
  uploadOfLoad,
  uploadRecord,
} from '../../api/upload.ts';
import { MAX_LISTED_UPLOADS } from '../../domain/limits.ts';
import { keepFileOfLoad } from '../../load/retry-load.ts';
import { listKeptUploads, removeUpload } from '../../load/uploads.ts';
import type { Upload } from '../../postgres/stores/uploads.ts';
import { idParameter, jobParameters } from '../parameters.ts';
import { type Route, route } from '../route.ts';

const renderUpload = ({ isGzip: _, ref: __, ...upload }: Upload): UploadRecord => render(upload);

const list = route({
  at: 'GET /v1/uploads',
  operationId: 'listUploads',
  summary: 'List uploads',
  description: `Lists the files that the environment keeps for inspection: the latest ${MAX_LISTED_UPLOADS}, latest first. The body is a bare array.`,
  access: 'import',
  answer: {
    description: 'The uploads.',
    headers: ['Cache-Control'],
    schema: Type.Array(uploadRecord.ref, { maxItems: MAX_LISTED_UPLOADS }),
  },
  handle: async ({ system, environment }) => (await listKeptUploads(system, environment)).map(renderUpload),
});

const remove = route({
  at: 'DELETE /v1/uploads/:upload_id',
  operationId: 'removeUpload',
  summary: 'Remove an upload',
  description: 'Removes the upload before it expires. Loads made from it keep their own files.',
  access: 'import',
  params: idParameter('upload_id', 'upload', exampleUploadId),
  answer: { status: 204, description: 'The upload is removed.' },
  handle: async ({ system, params: { upload_id }, environment }) => {
    await removeUpload(system, environment, upload_id);
  },
});

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
    return { ...renderUpload(upload), options };
  },
});

export const uploadRoutes: readonly Route[] = [list, remove, ofLoad];
