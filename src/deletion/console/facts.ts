import { formatCount } from '../../console/client/lib/format.ts';
import type { JobDetail } from '../../console/client/lib/jobs.ts';
import type { Fact } from '../../console/client/ui/page.tsx';
import type { DeletionJobDetail } from '../api.ts';

declare module '../../console/client/lib/jobs.ts' {
  interface JobDetail extends Partial<Pick<DeletionJobDetail, 'removed'>> {}
}

export function deletionFacts(job: JobDetail): readonly Fact[] {
  const { counts = {}, removed = {} } = job;
  return [
    ['Ids', `${formatCount(counts['requested'] ?? 0)} requested`],
    ['Deleted', formatCount(counts['deleted'] ?? 0)],
    ['Not found', formatCount(counts['not_found'] ?? 0)],
    ...Object.entries<number>(removed).map(([name, n]): Fact => [`Removed ${name}`, formatCount(n)]),
  ];
}
