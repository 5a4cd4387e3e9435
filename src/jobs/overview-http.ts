import { hostname } from 'node:os';
import { RATE_PERIODS } from '../base/limits.ts';
import { defaultEnvironmentName } from '../domain/caller.ts';
import { renderNeed } from '../domain/need.ts';
import { callerOf } from '../http/caller.ts';
import { optionalChoice } from '../http/parameters.ts';
import { lenientQuery } from '../http/plugins/validation.ts';
import { type Route, route } from '../http/route.ts';
import { examine } from '../telemetry/health/checks.ts';
import type { Finding } from '../telemetry/health/findings.ts';
import { createProbe } from '../telemetry/health/ready.ts';
import { findNeeds } from './jobs.ts';
import { overview } from './overview-api.ts';
import { readJobsOverview, readRates, readWork } from './overview-store.ts';

/** The checks use their own connections. All requests share the result. */
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
    findings: createProbe(() => examine(system.config), findingsProbe),
    queue: createProbe(system.queueCounts, queueProbe),
  }),
  handle: async ({
    system,
    prepared: { findings, queue },
    request,
    query: { period = '1h' },
    environment,
  }) => {
    const { environment: caller, session } = callerOf(request);
    const { db, inTurn, pool } = system.reader;
    const { redisUrl } = system.config;
    const mayRead = caller.name === defaultEnvironmentName || session?.isAdmin === true;
    const [health, findingsNow, rates, queues, work, jobs] = await Promise.all([
      system.health.check(),
      findings(),
      readRates(db, environment, RATE_PERIODS[period]),
      mayRead ? queue() : null,
      readWork(db, environment, mayRead),
      inTurn(() => readJobsOverview(db, environment)),
    ]);
    const counts = { unaccounted: jobs.unaccounted, failedJobs: jobs.failed_24h };
    const [needs] = await findNeeds(pool, environment, await system.figures(), counts);
    return {
      server: `${hostname()} ${process.pid}`,
      health,
      findings: {
        ...summarize('value' in findingsNow ? findingsNow.value : [], mayRead),
        is_known: 'value' in findingsNow,
      },
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

export const overviewRoutes: readonly Route[] = [show];
