import { hostname } from 'node:os';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { overview } from '../../api/overview.ts';
import { exampleText, text } from '../../api/schema.ts';
import { findNeeds } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import type { Finding } from '../../doctor/check.ts';
import { inputError } from '../../domain/errors.ts';
import { RATE_PERIODS } from '../../domain/limits.ts';
import { renderNeed } from '../../domain/need.ts';
import type { Sink } from '../../live/channel.ts';
import { readTopic, type Topic } from '../../live/views.ts';
import { sessionPrefix } from '../../postgres/stores/api-keys.ts';
import { defaultEnvironmentName } from '../../postgres/stores/environments.ts';
import { readJobsOverview, readRates, readWork } from '../../postgres/stores/overview.ts';
import { createProbe } from '../../telemetry/health.ts';
import { onceClosed } from '../gone-client.ts';
import { checked, optionalChoice } from '../parameters.ts';
import { callerOf } from '../plugins/auth.ts';
import { lenientQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';

/** The checks open connections of their own. They run once in this time, whoever asks, and nobody waits long for them. */
const findingsProbe = { deadlineMs: 1_500, keepMs: () => 300_000 };

const queueProbe = { deadlineMs: 700, keepMs: () => 1_000 };

const show = route({
  at: 'GET /v1/overview',
  operationId: 'showOverview',
  summary: 'Show an overview of the environment',
  description:
    'Returns problems that need attention, the health of the service, the records of a period by outcome, the jobs of each day, the jobs in the lane, failed jobs, and the number of unaccounted records.',
  access: 'read',
  query: lenientQuery({
    period: optionalChoice(
      Object.keys(RATE_PERIODS) as (keyof typeof RATE_PERIODS)[],
      'period is 1h, 24h or 30d',
      'Period of `rates`.',
      '1h',
    ),
  }),
  answer: { description: 'The overview.', schema: overview.ref },
  prepare: (system) => ({
    findings: createProbe(() => findAll(system), findingsProbe),
    queue: createProbe(system.queueCounts, queueProbe),
  }),
  handle: async ({ system, own: { findings, queue }, request, query: { period = '1h' }, environment }) => {
    const { environment: theirs, session } = callerOf(request);
    const { db, inTurn, pool } = system.reader;
    const { schedulesFile, redisUrl } = system.config;
    const mayRead = theirs.name === defaultEnvironmentName || session?.isAdmin === true;
    const [health, found, rates, queues, work, jobs] = await Promise.all([
      system.health.check(),
      findings(),
      readRates(db, environment, RATE_PERIODS[period]),
      mayRead ? queue() : null,
      readWork(db, environment, mayRead),
      inTurn(() => readJobsOverview(db, environment)),
    ]);
    const known = { unaccounted: jobs.unaccounted, failedJobs: jobs.failed_24h };
    const [needs] = await findNeeds(pool, { environmentId: environment, schedulesFile, known });
    return {
      server: `${hostname()} ${process.pid}`,
      health,
      findings: { ...summarize('value' in found ? found.value : [], mayRead), is_known: 'value' in found },
      needs: needs?.needs.map(renderNeed) ?? [],
      rates,
      rate_minutes: RATE_PERIODS[period],
      work,
      queue: queues && {
        lives_in: redisUrl === null ? ('postgres' as const) : ('redis' as const),
        is_known: 'value' in queues,
        queues: 'value' in queues ? queues.value : [],
      },
      ...jobs,
    };
  },
});

function summarize(items: readonly Finding[], mayRead: boolean) {
  const count = (status: Finding['status']): number => items.filter((each) => each.status === status).length;
  return { warnings: count('warning'), failed: count('failed'), items: mayRead ? items : [] };
}

/** Schedules are left out: the doctor asks for them with the variables of the process, which a route does not know. */
async function findAll({ config }: System): Promise<readonly Finding[]> {
  const { examine } = await import('../../doctor/examine.ts');
  return (await examine(config)).filter(({ check }) => check !== 'schedules');
}

export const overviewRoutes: readonly Route[] = [show];

const maxLiveTopics = 20;

const wrongTopics = `topics has 1 to ${maxLiveTopics} of jobs, job:<job_id>, pulse and records, with commas between`;

const query = lenientQuery({
  topics: checked(
    text(
      `Topics of the stream, at most ${maxLiveTopics}, separated by commas: \`jobs\`, \`job:<job_id>\`, \`pulse\`, \`records\`.`,
      'jobs,pulse',
    ),
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
      'text/event-stream': exampleText(
        'Server-sent events.',
        'stream',
        'Beginning of a stream',
        exampleEvents,
      ),
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
