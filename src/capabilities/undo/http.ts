import type { Static } from 'typebox';
import { readLimits } from '../../domain/guards.ts';
import { callerOrigin } from '../../http/caller.ts';
import { jobRecord } from '../../http/job.ts';
import { actionHeaders, idempotencyKeyOf, jobParameters } from '../../http/parameters.ts';
import { type Call, type Route, route } from '../../http/route.ts';
import { renderQueued } from '../../load/upload/receive-upload.ts';
import { requireQueueRoom } from '../../tasks/job-store.ts';
import { acceptUndo } from './accept.ts';
import { undoBody } from './api.ts';

const what =
  'Queues a job of type `undo` in the lane of the environment. When its turn comes, it loads the reverse of the changes that the load made. Values return to what they were, profiles that the load made are removed, profiles that it removed come back, and its events are removed with their IDs, so that a corrected file loads again. Values that have changed since the load stay, and are listed as refused records of the undo. An undo can be planned, cancelled and retried, but not undone: load the file again instead.';

const common = {
  access: 'import',
  headers: actionHeaders,
  answer: { status: 202, description: 'The undo is queued.', schema: jobRecord.ref },
  refuses: ['job_not_undoable', 'job_expired'],
} as const;

type UndoCall = Pick<Call, 'system' | 'request' | 'environment' | 'base'>;

async function queueUndo(
  { system, request, environment, base }: UndoCall,
  jobId: string,
  body: Static<typeof undoBody>,
) {
  const idempotencyKey = idempotencyKeyOf(request);
  await requireQueueRoom(system.db, environment, idempotencyKey, system.config.maxQueuedJobs);
  const undo = {
    jobIds: [jobId],
    plan: body.plan ?? false,
    ...readLimits(body),
  };
  const caller = {
    environmentId: environment,
    idempotencyKey,
    requestId: request.id,
    origin: callerOrigin(request),
  };
  return renderQueued({ system, environment, base }, await acceptUndo(system, undo, caller));
}

const undoOne = route({
  at: 'POST /v1/background_jobs/:job_id/undo',
  operationId: 'undoJob',
  summary: 'Undo a load',
  description: what,
  ...common,
  params: jobParameters,
  json: {
    schema: undoBody,
    examples: {
      whole: { summary: 'All of it', value: {} },
      plan: { summary: 'What would it do?', value: { plan: true } },
      guarded: { summary: 'If it is not too much', value: { max_changed: '5%' } },
    },
  },
  handle: async ({ params, body, ...call }) => queueUndo(call, params.job_id, body),
});

export const undoRoutes: readonly Route[] = [undoOne];
