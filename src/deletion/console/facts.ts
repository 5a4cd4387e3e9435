import { formatCount } from '../../console/client/lib/format.ts';
import type { Fact } from '../../console/client/ui/page.tsx';
import type { DeletionJobDetail } from '../api.ts';

declare module '../../console/client/lib/jobs.ts' {
  interface JobDocuments {
    readonly deletion: DeletionJobDetail;
  }
}

export function deletionFacts({ counts, removed }: DeletionJobDetail): readonly Fact[] {
  return [
    ['Ids', `${formatCount(counts.requested)} requested`],
    ['Deleted', formatCount(counts.deleted)],
    ['Not found', formatCount(counts.not_found)],
    ...Object.entries(removed).map(([name, n]): Fact => [`Removed ${name}`, formatCount(n)]),
  ];
}
