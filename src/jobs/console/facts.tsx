import { visibleText } from '../../console/client/lib/format.ts';
import { isLoad, type JobDetail, originText } from '../../console/client/lib/jobs.ts';
import { Copied } from '../../console/client/ui/controls.tsx';
import { type Fact, Time } from '../../console/client/ui/page.tsx';
import { deletionFacts } from '../../deletion/console/facts.ts';
import { exportFacts } from '../../export/console/job.tsx';
import type { JobHistory } from '../../http/job.ts';
import { loadFacts } from '../../load/console/facts.tsx';
import { jobTypeNames } from './job-types.ts';

export function factsOf(job: JobDetail, history: JobHistory): readonly Fact[] {
  return [
    ['Type', jobTypeNames[job.type] ?? job.type],
    ['Job', <Copied key="job" text={job.job_id} />],
    ...kindFacts(job),
    ...requestFacts(history, job.start_time),
  ];
}

function kindFacts(job: JobDetail): readonly Fact[] {
  if (isLoad(job)) return loadFacts(job);
  return job.type === 'export' ? exportFacts(job) : deletionFacts(job);
}

function requestFacts({ origin, request_id, parameters }: JobHistory, startTime: string): readonly Fact[] {
  const stated = Object.entries(parameters).filter(([name, value]) => name !== 'chunks' && isStated(value));
  return [
    ['By', originText(origin)],
    ['Request id', request_id === null ? 'none' : <Copied key="request" text={request_id} />],
    ['At', <Time key="at" at={startTime} />],
    ...stated.map(([name, value]): Fact => {
      const text = typeof value === 'string' ? visibleText(value) : JSON.stringify(value);
      return [<code key={name}>{name}</code>, <code key={name}>{text}</code>];
    }),
  ];
}

function isStated(value: unknown): boolean {
  if (value === null || value === undefined || value === false) return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}
