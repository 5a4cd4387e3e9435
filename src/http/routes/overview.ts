import { hostname } from 'node:os';
import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { type laneItem, overview, type queueState, type work } from '../../api/overview.ts';
import { findNeeds } from '../../background-jobs/needs.ts';
import type { System } from '../../context.ts';
import type { Finding } from '../../doctor/check.ts';
import { renderNeed } from '../../domain/need.ts';
import type { QueueCounts } from '../../domain/task.ts';
import { defaultEnvironmentName } from '../../postgres/stores/environments.ts';
import {
  readEnvironmentOverview,
  readRates,
  readWork,
  type WorkOverview,
} from '../../postgres/stores/overview.ts';
import { type Answer, createProbe } from '../../telemetry/health.ts';
import { callerOf } from '../plugins/auth.ts';
import { refusals } from '../schemas/answers.ts';

const showOverviewSchema = {
  operationId: 'showOverview',
  summary: 'Show what the environment is at',
  description:
    'Returns what needs attention, health, rates of the last hour, the lane, what failed, and the number that must be 0.',
  tags: ['jobs'],
  response: {
    200: { description: 'The overview.', content: { 'application/json': { schema: overview.ref } } },
    ...refusals(),
  },
} satisfies FastifySchema;

/** Checks open connections of their own; they are made once in this time, whoever asks, and nobody waits long for them. */
const keepFindingsMs = 300_000;

const findingsDeadlineMs = 1_500;

/** The queue is asked so often, whoever wants to know. */
const keepQueueMs = 1_000;

const queueDeadlineMs = 700;

export function showOverview(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read' }, schema: showOverviewSchema } as const;
  const findings = createProbe(() => findAll(system), {
    deadlineMs: findingsDeadlineMs,
    keepMs: () => keepFindingsMs,
  });
  const queue = createProbe(system.queueCounts, { deadlineMs: queueDeadlineMs, keepMs: () => keepQueueMs });
  const server = `${hostname()} ${process.pid}`;
  app.get('/v1/overview', options, async (request, reply) => {
    const { environment, session } = callerOf(request);
    const { environmentId, name } = environment;
    const { db, inTurn } = system.reader;
    const mayRead = name === defaultEnvironmentName || session?.isAdmin === true;
    const [health, found, minutes, queues, tasks, { lane, ...state }] = await Promise.all([
      system.health.check(),
      findings(),
      readRates(db, environmentId),
      mayRead ? queue() : null,
      readWork(db, environmentId, mayRead),
      inTurn(() => readEnvironmentOverview(db, environmentId)),
    ]);
    const [needs] = await findNeeds(system.reader.pool, {
      environmentId,
      schedulesFile: system.config.schedulesFile,
      known: { unaccounted: state.unaccounted, failedJobs: state.failedLately },
    });
    const known = 'value' in found ? found.value : [];
    const answer: Static<typeof overview.schema> = {
      server,
      health: { status: health.status, parts: { ...health.parts } },
      findings: {
        warnings: known.filter(({ status }) => status === 'warning').length,
        failed: known.filter(({ status }) => status === 'failed').length,
        items: mayRead ? known.map((each) => ({ ...each })) : [],
        is_known: 'value' in found,
      },
      needs: needs?.needs.map(renderNeed) ?? [],
      minutes: minutes.map(({ minute, ...counts }) => ({ minute: minute.toISOString(), ...counts })),
      queued: state.queued,
      processing: state.processing,
      failed_24h: state.failedLately,
      unaccounted: state.unaccounted,
      work: renderWork(tasks),
      queue: queues === null ? null : renderQueue(system, queues),
      lane: lane.map(({ jobId, acceptedAt, ...item }, position) => ({
        position,
        job_id: jobId,
        ...(item as Pick<Static<typeof laneItem>, 'type' | 'status' | 'filename' | 'done' | 'total'>),
        start_time: acceptedAt.toISOString(),
      })),
    };
    return reply.send(answer);
  });
}

function renderWork({ failing, ...counts }: WorkOverview): Static<typeof work> {
  return {
    ...counts,
    failing: failing.map(({ kind, jobId, part, failures, losses, lastError, nextTryAt }) => ({
      task: kind,
      job_id: jobId,
      part,
      failures,
      losses,
      last_error: lastError,
      next_try_at: nextTryAt?.toISOString() ?? null,
    })),
  };
}

function renderQueue({ config }: System, counts: Answer<readonly QueueCounts[]>): Static<typeof queueState> {
  return {
    lives_in: config.redisUrl === null ? 'postgres' : 'redis',
    is_known: 'value' in counts,
    queues: 'value' in counts ? counts.value.map((each) => ({ ...each })) : [],
  };
}

/** Of schedules the doctor asks with the variables of the process, which a route does not know; they have a page of their own. */
async function findAll({ config }: System): Promise<readonly Finding[]> {
  const { examine } = await import('../../doctor/examine.ts');
  return (await examine(config)).filter(({ check }) => check !== 'schedules');
}
