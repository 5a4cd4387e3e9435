import { visibleText } from '../../console/client/lib/format.ts';
import { isLoad, type JobDetail, originText } from '../../console/client/lib/jobs.ts';
import { Copied } from '../../console/client/ui/controls.tsx';
import { type Fact, Time } from '../../console/client/ui/page.tsx';
import { deletionFacts } from '../../deletion/console/facts.ts';
import { exportFacts } from '../../export/console/job.tsx';
import { loadFacts } from '../../load/console/facts.tsx';
import { jobTypeNames } from './job-types.ts';

export function factsOf(job: JobDetail): readonly Fact[] {
  return [
    ['Type', jobTypeNames[job.type] ?? job.type],
    ['Job', <Copied key="job" text={job.job_id} />],
    ...kindFacts(job),
    ...requestFacts(job),
  ];
}

function kindFacts(job: JobDetail): readonly Fact[] {
  if (isLoad(job)) return loadFacts(job);
  return job.type === 'export' ? exportFacts(job) : deletionFacts(job);
}

function requestFacts({ origin, request_id, start_time, options, options_cut }: JobDetail): readonly Fact[] {
  const stated = Object.entries(options).filter(([, value]) => isStated(value));
  return [
    ['By', originText(origin)],
    ['Request id', request_id === null ? 'none' : <Copied key="request" text={request_id} />],
    ['At', <Time key="at" at={start_time} />],
    ...stated.map(([name, value]): Fact => {
      const text = typeof value === 'string' ? visibleText(value) : JSON.stringify(value);
      return [<code key={name}>{name}</code>, <code key={name}>{text}</code>];
    }),
    ['Options', options_cut ? 'Long lists are cut here' : null],
  ];
}

function isStated(value: unknown): boolean {
  if (value === null || value === undefined || value === false) return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}
