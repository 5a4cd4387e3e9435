import { hostname } from 'node:os';
import { type Overview, overview } from '../../api/overview.ts';
import { render } from '../../api/render.ts';
import { findNeeds } from '../../background-jobs/jobs.ts';
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
import { type Route, route } from '../route.ts';

/** The checks open connections of their own. They run once in this time, whoever asks, and nobody waits long for them. */
const findingsProbe = { deadlineMs: 1_500, keepMs: () => 300_000 };

const queueProbe = { deadlineMs: 700, keepMs: () => 1_000 };

const show = route({
  at: 'GET /v1/overview',
  operationId: 'showOverview',
  summary: 'Show an overview of the environment',
  description:
    'Returns problems that need attention, the health of the service, rates of the last hour, the jobs in the lane, failed jobs, and the number of unaccounted records.',
  access: 'read',
  answer: { description: 'The overview.', schema: overview.ref },
  prepare: (system) => ({
    findings: createProbe(() => findAll(system), findingsProbe),
    queue: createProbe(system.queueCounts, queueProbe),
  }),
  handle: async ({ system, own: { findings, queue }, request, environment }) => {
    const { environment: theirs, session } = callerOf(request);
    const { db, inTurn, pool } = system.reader;
    const mayRead = theirs.name === defaultEnvironmentName || session?.isAdmin === true;
    const [health, found, minutes, queues, tasks, { lane, ...state }] = await Promise.all([
      system.health.check(),
      findings(),
      readRates(db, environment),
      mayRead ? queue() : null,
      readWork(db, environment, mayRead),
      inTurn(() => readEnvironmentOverview(db, environment)),
    ]);
    const [needs] = await findNeeds(pool, {
      environmentId: environment,
      schedulesFile: system.config.schedulesFile,
      known: { unaccounted: state.unaccounted, failedJobs: state.failedLately },
    });
    return {
      server: `${hostname()} ${process.pid}`,
      health: { status: health.status, parts: health.parts },
      findings: renderFindings(found, mayRead),
      needs: needs?.needs.map(renderNeed) ?? [],
      minutes: minutes.map(render),
      queued: state.queued,
      processing: state.processing,
      failed_24h: state.failedLately,
      unaccounted: state.unaccounted,
      work: renderWork(tasks),
      queue: queues === null ? null : renderQueue(system, queues),
      lane: lane.map(({ jobId, acceptedAt, ...item }, position) => ({
        position,
        job_id: jobId,
        ...(item as Pick<Overview['lane'][number], 'type' | 'status' | 'filename' | 'done' | 'total'>),
        start_time: acceptedAt.toISOString(),
      })),
    };
  },
});

function renderFindings(found: Answer<readonly Finding[]>, mayRead: boolean) {
  const known = 'value' in found ? found.value : [];
  return {
    warnings: known.filter(({ status }) => status === 'warning').length,
    failed: known.filter(({ status }) => status === 'failed').length,
    items: mayRead ? known : [],
    is_known: 'value' in found,
  };
}

function renderWork({ failing, ...counts }: WorkOverview): Overview['work'] {
  return {
    ...counts,
    failing: failing.map(({ kind: task, ...others }) => ({ task, ...render(others) })),
  };
}

function renderQueue({ config }: System, counts: Answer<readonly QueueCounts[]>) {
  return {
    lives_in: config.redisUrl === null ? ('postgres' as const) : ('redis' as const),
    is_known: 'value' in counts,
    queues: 'value' in counts ? counts.value : [],
  };
}

/** Schedules are left out: the doctor asks for them with the variables of the process, which a route does not know. */
async function findAll({ config }: System): Promise<readonly Finding[]> {
  const { examine } = await import('../../doctor/examine.ts');
  return (await examine(config)).filter(({ check }) => check !== 'schedules');
}

export const overviewRoutes: readonly Route[] = [show];
