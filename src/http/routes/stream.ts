import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { withExamples } from '../../api/schema.ts';
import { inputError } from '../../domain/errors.ts';
import type { Sink } from '../../live/channel.ts';
import { readTopic, type Topic } from '../../live/views.ts';
import { sessionPrefix } from '../../postgres/stores/api-keys.ts';
import { onceClosed } from '../gone-client.ts';
import { checked } from '../parameters.ts';
import { callerOf } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';

const maxLiveTopics = 20;

const wrongTopics = `topics has 1 to ${maxLiveTopics} of jobs, job:<job_id>, pulse and records, with commas between`;

const query = listQuery({
  topics: checked(
    Type.String({
      description: `Topics of the stream, at most ${maxLiveTopics}, separated by commas: \`jobs\`, \`job:<job_id>\`, \`pulse\`, \`records\`.`,
      examples: ['jobs,pulse'],
    }),
    (text) => readTopics(text) !== null,
    wrongTopics,
  ),
});

function readTopics(text: string): Topic[] | null {
  const topics = [...new Set(text.split(','))].map(readTopic);
  if (topics.length > maxLiveTopics) return null;
  const known = topics.filter((topic) => topic !== null);
  return known.length === topics.length ? known : null;
}

const exampleEvents = `retry: 2000

event: jobs
data: {"snapshot":true,"complete":true,"jobs":[]}

event: ready
data: {"server":"sluice-1 4711"}

: still here
`;

const description = `Opens a stream of server-sent events that lasts as long as its key. Each topic has an event of its name: first a snapshot with \`snapshot: true\`, then the changes.

- \`jobs\`: \`jobs\` has the newest background jobs and all that have not ended. \`complete: false\` means that more jobs came at once than the stream covers; read the list again.
- \`job\`: \`job\` (null if it does not exist) and \`chunks\`, those that have changed.
- \`pulse\`: \`queued\` and \`running\`.
- \`records\`: single records as this server receives them, accepted and refused, with \`server\` (its host and process ID), \`arrived\` and \`shown\`.

\`ready\` follows the last snapshot. \`missed\` says how many \`events\` were left out because the stream was not read; snapshots follow. \`stale\` says \`since\` when the database has not answered; null once it answers again. \`end\` says why the stream ends: \`key\` or \`stopping\`. A client that reconnects gets snapshots again. Comments keep the connection alive.`;

/** The memory that a stream reserves in its environment. Messages are shared by all streams that get them. */
const heldBytes = 8 * 1024;

const watch = route({
  at: 'GET /v1/stream',
  operationId: 'watch',
  summary: 'Watch changes',
  description,
  access: 'read',
  config: { answerBytes: heldBytes },
  query,
  answer: {
    description: 'The stream.',
    headers: ['Cache-Control'],
    content: {
      'text/event-stream': withExamples(Type.String({ description: 'Server-sent events.' }), {
        stream: { summary: 'Beginning of a stream', value: exampleEvents },
      }),
    },
  },
  refuses: ['missing_field'],
  handle: async ({ system: { live }, request, reply, query, environment }) => {
    const topics = readTopics(query.topics);
    if (topics === null) throw inputError('invalid_field', wrongTopics, 'topics');
    live.requireRoom(environment);
    reply
      .header('content-type', 'text/event-stream; charset=utf-8')
      // nginx would collect the events.
      .header('x-accel-buffering', 'no');
    if (request.method === 'HEAD') return reply.send('');
    // From here on the stream answers by itself.
    const sink = hijack(reply);
    const watcher = { environmentId: environment, keyId: streamKey(request), topics };
    onceClosed(reply, live.open(watcher, sink));
    return reply;
  },
});

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

export const streamRoutes: readonly Route[] = [watch];
