import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { fileId, inboxRecord, name } from '../../api/inbox.ts';
import type { System } from '../../context.ts';
import { TransientError } from '../../domain/errors.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES, MAX_PAGE_SIZE, READ_TIMEOUT_MS } from '../../domain/limits.ts';
import { type InboxLook, inspectInbox, lookAt } from '../../sources/inbox/inspect-inbox.ts';
import { takeInAgain } from '../../sources/inbox/take-again.ts';
import { type Answer, createProbe, type ProbeOptions } from '../../telemetry/health.ts';
import { ruled, worded } from '../../validation.ts';
import { limitParameter } from '../page.ts';
import { callerEnvironment } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals, refusals } from '../schemas/answers.ts';

const closed = { additionalProperties: false };

type InboxRecord = Static<typeof inboxRecord.schema>;

const query = listQuery({ limit: limitParameter(MAX_PAGE_SIZE, 'How many of the last ones, at most.') });

const showInboxSchema = {
  operationId: 'showInbox',
  summary: 'Show the inbox',
  description:
    'The folder of the environment below INBOX_DIR, as this server sees it: what waits, what is being loaded, what is left alone, and what became of the last files. It looks once a second, and less often where many files lie. Other parameters are refused.',
  tags: ['schedules'],
  querystring: query,
  response: {
    200: { description: 'The inbox.', content: { 'application/json': { schema: inboxRecord.ref } } },
    ...refusals('invalid_field'),
  },
} satisfies FastifySchema;

const nobodyWatches: InboxRecord = {
  is_watched: false,
  waiting: 0,
  files: [],
  taken: [],
  ignored: [],
  held: [],
  recent: [],
};

/**
 * A look costs a call for each file, on the few threads that all files need: at 100 000 it takes seconds. So there is one a second at
 * most, and they take a tenth of the time.
 */
const looking: ProbeOptions = {
  deadlineMs: READ_TIMEOUT_MS,
  keepMs: (tookMs, failed) => (failed ? 0 : Math.max(1_000, 9 * tookMs)),
};

/** Looks at a folder, once for all who ask meanwhile or soon after. */
function lookTogether(): (path: string) => Promise<InboxLook> {
  const probes = new Map<string, () => Promise<Answer<InboxLook>>>();
  return async (path) => {
    const probe = probes.get(path) ?? createProbe(() => lookAt(path), looking);
    probes.set(path, probe);
    const answer = await probe();
    if ('value' in answer) return answer.value;
    throw new TransientError('the folder cannot be looked at', { cause: answer.error });
  };
}

export function showInbox(app: FastifyInstance, { reader, config }: System): void {
  const look = lookTogether();
  const options = {
    config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
    schema: showInboxSchema,
  } as const;
  app.get<{ Querystring: Static<typeof query> }>('/v1/inbox', options, async (request, reply) => {
    const { name: environment } = callerEnvironment(request);
    const { limit = DEFAULT_PAGE_SIZE } = request.query;
    const found =
      config.inboxDir === null
        ? null
        : await inspectInbox(reader, config.inboxDir, { environment, limit, look });
    const status = found?.environments[0];
    if (found === null || status === undefined) return reply.send(nobodyWatches);
    const record: InboxRecord = {
      is_watched: true,
      waiting: status.waiting,
      files: status.files.map((file) => ({
        name: file.name,
        size: file.size,
        modified_at: file.modifiedAt.toISOString(),
      })),
      taken: status.taken.map((file) => ({
        file_id: file.fileId,
        name: file.folder === '' ? file.name : `${file.folder}/${file.name}`,
        size: Number(file.size),
        state: file.state === 'concluded' ? 'loading' : file.state,
        claimed_at: file.claimedAt.toISOString(),
        job_id: file.jobId,
      })),
      ignored: status.ignored.map(({ name: each, why }) => ({ name: each, why })),
      held: [...status.held],
      recent: found.recent.map((file) => ({
        file_id: file.fileId,
        name: file.name,
        size: file.size,
        outcome: file.outcome,
        path: file.path,
        job_id: file.jobId,
        is_duplicate: file.isDuplicate,
        rejected: file.rejected,
        reasons: file.reasons.map((each) => ({ ...each })),
        concluded_at: file.concludedAt.toISOString(),
      })),
    };
    return reply.send(record);
  });
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const noSuchFile = 'there is no such failed file';

const parameters = Type.Object({
  file_id: worded(
    ruled(Type.String({ description: 'Id of the file.' }), (text) => (uuid.test(text) ? null : noSuchFile)),
    { says: { code: 'not_found', message: noSuchFile, details: 'file_id' } },
  ),
});

const takeAgainSchema = {
  operationId: 'takeInAgain',
  summary: 'Take a failed file in again',
  description:
    'Moves the file from failed back to where it was dropped, so that workers take it in anew, as their mapping.yaml says now. Its receipt stays. 404 if it is not in its place any more, or another file of its name lies there.',
  tags: ['schedules'],
  params: parameters,
  response: {
    202: {
      description: 'It lies in the inbox again.',
      content: {
        'application/json': {
          schema: Type.Object({ file_id: fileId, name }, { ...closed, description: 'The file.' }),
        },
      },
    },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function takeInAgainRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: takeAgainSchema } as const;
  app.post<{ Params: Static<typeof parameters> }>(
    '/v1/inbox/:file_id/take_again',
    options,
    async (request, reply) => {
      const { environmentId } = callerEnvironment(request);
      const { file_id } = request.params;
      const file = await takeInAgain(system, system.config.inboxDir, environmentId, file_id);
      system.log.info(
        { file_id, file: file.name, request_id: request.id },
        'inbox: a failed file is taken again',
      );
      return reply.code(202).send({ file_id, name: file.name });
    },
  );
}
