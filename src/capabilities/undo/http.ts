import { readLimits } from '../../domain/guards.ts';
import { callerOrigin } from '../../http/caller.ts';
import { jobRecord } from '../../http/job.ts';
import { actionHeaders, idempotencyKeyOf, jobParameters } from '../../http/parameters.ts';
import { type Route, route } from '../../http/route.ts';
import { renderQueued } from '../../load/upload/receive-upload.ts';
import { requireQueueRoom } from '../../tasks/job-store.ts';
import { acceptUndo } from './accept.ts';
import { undoBody } from './api.ts';

const undoOne = route({
  at: 'POST /v1/background_jobs/:job_id/undo',
  operationId: 'undoJob',
  summary: 'Undo a load',
  description:
    'Queues a job of type `undo` in the lane of the environment. When its turn comes, it loads the reverse of the changes that the load made. Values return to what they were, profiles that the load made are removed, profiles that it removed come back, and its events are removed with their IDs, so that a corrected file loads again. Values that have changed since the load stay, and are listed as refused records of the undo. An undo can be planned, cancelled and retried, but not undone: load the file again instead.',
  access: 'import',
  headers: actionHeaders,
  params: jobParameters,
  json: {
    schema: undoBody,
    examples: {
      whole: { summary: 'All of it', value: {} },
      plan: { summary: 'What would it do?', value: { plan: true } },
      guarded: { summary: 'If it is not too much', value: { max_changed: '5%' } },
    },
  },
  answer: { status: 202, description: 'The undo is queued.', schema: jobRecord.ref },
  refuses: ['job_not_undoable', 'job_expired'],
  handle: async ({ system, request, environment, base, params, body }) => {
    const idempotencyKey = idempotencyKeyOf(request);
    await requireQueueRoom(system.db, environment, idempotencyKey, system.config.maxQueuedJobs);
    const undo = { jobIds: [params.job_id], plan: body.plan ?? false, ...readLimits(body) };
    const caller = {
      environmentId: environment,
      idempotencyKey,
      requestId: request.id,
      origin: callerOrigin(request),
    };
    return renderQueued({ system, environment, base }, await acceptUndo(system, undo, caller));
  },
});

export const undoRoutes: readonly Route[] = [undoOne];
