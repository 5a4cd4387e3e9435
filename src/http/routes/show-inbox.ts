import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
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
import { component, jobRefusals, orNull, refusals } from '../schemas/answers.ts';

const closed = { additionalProperties: false };
const exampleTime = '2026-11-20T12:00:41.120Z';
const time = (description: string) =>
  Type.String({ format: 'date-time', description, examples: [exampleTime] });
const name = Type.String({ description: 'As it was dropped, below the folder of the environment.' });
const size = Type.Integer({ minimum: 0, description: 'Bytes.' });
const fileId = Type.String({ format: 'uuid', description: 'Its id in the ledger of the inbox.' });
const jobId = orNull(Type.String({ format: 'uuid', description: 'Its job; null: there is none.' }));

const reason = Type.Object(
  {
    error_code: Type.String({ description: 'Stable; for programs.' }),
    message: Type.String({ description: 'A sentence for a person.' }),
    details: Type.String({ description: 'Where; may be empty.' }),
  },
  closed,
);

export const inboxRecord = component(
  'Inbox',
  Type.Object(
    {
      is_watched: Type.Boolean({
        description: 'INBOX_DIR is set for this server, and workers have watched it.',
      }),
      waiting: Type.Integer({ minimum: 0, description: 'Files that lie in the folders, complete or not.' }),
      files: Type.Array(
        Type.Object({ name, size, modified_at: time('When it was written to last.') }, closed),
        { description: 'The first 200 of them, the oldest first.' },
      ),
      taken: Type.Array(
        Type.Object(
          {
            file_id: fileId,
            name,
            size,
            state: Type.Enum(['claimed', 'loading', 'refused'], {
              type: 'string',
              description: 'Not received yet, its load is accepted, or there will be none.',
            }),
            claimed_at: time('When it was taken.'),
            job_id: jobId,
          },
          closed,
        ),
        {
          description:
            'Those that were taken and are not in done or failed yet, in order of arrival; 200 at most.',
        },
      ),
      ignored: Type.Array(Type.Object({ name, why: Type.String({ description: 'A sentence.' }) }, closed), {
        description: 'Files that are left where they are.',
      }),
      held: Type.Array(Type.String(), {
        description: 'Folders whose mapping.yaml is wrong; what lies there waits.',
      }),
      recent: Type.Array(
        Type.Object(
          {
            file_id: fileId,
            name,
            size,
            outcome: Type.Enum(['done', 'failed'], { type: 'string', description: 'Where it lies now.' }),
            path: Type.String({
              description: 'Its place below the folder of the environment; the receipt is beside it.',
            }),
            job_id: jobId,
            is_duplicate: Type.Boolean({ description: 'The job loaded the same bytes before.' }),
            rejected: Type.Integer({
              minimum: 0,
              description: 'Records that its job refused and that have not been mended.',
            }),
            reasons: Type.Array(reason, { description: 'Why it was not loaded, or not as a whole.' }),
            concluded_at: time('When it was moved there.'),
          },
          closed,
        ),
        { description: 'What became of the last ones, the newest first.' },
      ),
    },
    {
      ...closed,
      description: 'The folder of the environment that is watched for files.',
      examples: [
        {
          is_watched: true,
          waiting: 1,
          files: [{ name: 'users.csv', size: 85, modified_at: exampleTime }],
          taken: [],
          ignored: [],
          held: [],
          recent: [
            {
              file_id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
              name: 'users-1.csv',
              size: 85,
              outcome: 'done',
              path: 'done/2026-11-20/users-1.csv',
              job_id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
              is_duplicate: false,
              rejected: 0,
              reasons: [],
              concluded_at: exampleTime,
            },
          ],
        },
      ],
    },
  ),
);
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
