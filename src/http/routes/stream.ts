import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { MAX_LIVE_TOPICS } from '../../domain/limits.ts';
import type { Sink } from '../../live/channel.ts';
import { readTopic, type Topic } from '../../live/topic.ts';
import { sessionPrefix } from '../../postgres/stores/api-keys.ts';
import { ruled, worded } from '../../validation.ts';
import { onceClosed } from '../gone-client.ts';
import { callerOf, environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { named, refusals } from '../schemas/answers.ts';

const wrongTopics = `topics has 1 to ${MAX_LIVE_TOPICS} of jobs, job:<job_id>, pulse and records, with commas between`;

const query = listQuery({
  topics: worded(
    ruled(
      Type.String({
        description: `What the stream is about, up to ${MAX_LIVE_TOPICS} topics with commas between: \`jobs\`, \`job:<job_id>\`, \`pulse\`, \`records\`.`,
        examples: ['jobs,pulse'],
      }),
      (text) => (readTopics(text) === null ? wrongTopics : null),
    ),
    wrongTopics,
  ),
});

const exampleEvents = `retry: 2000

event: jobs
data: {"snapshot":true,"complete":true,"jobs":[]}

event: ready
data: {"server":"sluice-1 4711"}
id: 9f3c1a5b7d20-0

: still here
`;

const streamSchema = {
  operationId: 'watch',
  summary: 'Watch what changes',
  description: `A stream of server-sent events that lasts as long as its key. Each topic has an event of its name: first with \`snapshot: true\` and everything, then with what has changed.

- \`jobs\`: \`jobs\`, the newest background jobs and all that have not ended. \`complete: false\`: more have come at once than the stream is about; read the list again.
- \`job\`: \`job\` (null: there is none) and \`chunks\`, those that have changed.
- \`pulse\`: \`queued\` and \`running\`.
- \`records\`: single records as this server takes them, accepted and refused, with \`server\` (its host and process id), \`arrived\` and \`shown\`.

\`ready\` follows the last snapshot. \`missed\`: so many \`events\` were left out because the stream was not read; snapshots follow. \`stale\`: the database has not answered \`since\`; null: it answers again. \`end\`: the stream ends, because of its \`key\`, or because the server is \`stopping\`. Whoever comes back within ${30} seconds with \`Last-Event-ID\` gets what it missed, else snapshots. Comments say that the stream is still there.`,
  tags: ['jobs'],
  querystring: query,
  headers: Type.Object({
    'Last-Event-ID': Type.Optional(
      Type.String({
        description: 'The last `id` that came, as browsers send it.',
        examples: ['9f3c1a5b7d20-0'],
      }),
    ),
  }),
  response: {
    200: {
      description: 'The stream.',
      headers: named('Cache-Control'),
      content: {
        'text/event-stream': withExamples(Type.String({ description: 'Server-sent events.' }), {
          stream: { summary: 'Its beginning', value: exampleEvents },
        }),
      },
    },
    ...refusals('missing_field', 'invalid_field'),
  },
} satisfies FastifySchema;

function readTopics(text: string): Topic[] | null {
  const topics = [...new Set(text.split(','))].map(readTopic);
  if (topics.length > MAX_LIVE_TOPICS) return null;
  const known = topics.filter((topic) => topic !== null);
  return known.length === topics.length ? known : null;
}

/** What a stream sets aside of what its environment may leave unread: messages are shared by all who get them. */
const heldBytes = 8 * 1024;

/** Answers by itself: the stream is no answer that ends. */
export function watch(app: FastifyInstance, { live }: System): void {
  const options = { config: { scope: 'read', answerBytes: heldBytes }, schema: streamSchema } as const;
  app.get<{ Querystring: Static<typeof query> }>('/v1/stream', options, async (request, reply) => {
    const topics = readTopics(request.query.topics);
    if (topics === null) throw inputError('invalid_field', wrongTopics, 'topics');
    const environment = environmentId(request);
    live.requireRoom(environment);
    reply
      .header('content-type', 'text/event-stream; charset=utf-8')
      // nginx would collect the events.
      .header('x-accel-buffering', 'no');
    if (request.method === 'HEAD') return reply.send('');
    const sink = hijack(reply);
    const given = request.headers['last-event-id'];
    const close = live.open(
      {
        environmentId: environment,
        keyId: streamKey(request),
        topics,
        lastEventId: typeof given === 'string' ? given : null,
      },
      sink,
    );
    onceClosed(reply, close);
    return reply;
  });
}

/** What the stream ends with: the key, or the session of the console. */
function streamKey(request: FastifyRequest): string {
  const { session, keyId } = callerOf(request);
  return session === undefined ? keyId : sessionPrefix + session.sessionId;
}

function hijack(reply: FastifyReply): Sink {
  const { raw } = reply;
  reply.hijack();
  raw.writeHead(200, reply.getHeaders() as Record<string, string>);
  raw.socket?.setNoDelay(true);
  return {
    write: (bytes) => {
      if (!raw.writableEnded && !raw.destroyed) raw.write(bytes);
    },
    unread: () => raw.writableLength + (raw.socket?.writableLength ?? 0),
    end: () => raw.end(),
  };
}
