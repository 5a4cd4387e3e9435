import { parts } from 'sluice:capabilities';
import { plural, visibleText } from '../../console/client/lib/format.ts';
import { type LoadJob, originText } from '../../console/client/lib/jobs.ts';
import { Copied } from '../../console/client/ui/controls.tsx';
import { type Fact, JobLink } from '../../console/client/ui/page.tsx';
import type { JobDetail as LoadDetail } from '../api.ts';

declare module '../../console/client/lib/jobs.ts' {
  interface JobDocuments {
    readonly load: LoadDetail;
  }
}

export function loadFacts(job: LoadJob): readonly Fact[] {
  const { read_as: readAs, sources, duplicate_of: twin, held } = job;
  return [
    ['Read as', readAs && formatOf(readAs)],
    ...sources.map(({ sha256 }): Fact => ['SHA-256', sha256 && <Copied text={sha256} />]),
    ['Same bytes as', twin && <JobLink id={twin} />],
    ['Mends', job.mends && <JobLink id={job.mends} />],
    ...job.rejects.loaded_since.jobs.map((id): Fact => ['Mended by', <JobLink key={id} id={id} />]),
    ['Held', held?.reasons.map(({ figure, message }) => `${figure}: ${visibleText(message)}`).join('; ')],
    ['Decided by', held?.decided_by && originText(held.decided_by)],
    ...(readAs?.notes ?? []).map((text): Fact => ['Remarks', text]),
    ...parts.flatMap(({ jobFacts }) => jobFacts?.(job) ?? []),
  ];
}

function formatOf({ format, encoding, csv, sheet, member }: NonNullable<LoadJob['read_as']>): string {
  const parts = [format.toUpperCase(), encoding];
  if (csv !== null)
    parts.push(`delimiter ${JSON.stringify(csv.delimiter)}`, plural(csv.columns.length, 'column'));
  if (sheet !== null) parts.push(`sheet ${visibleText(sheet)}`);
  if (member !== null) parts.push(`file ${visibleText(member)}`);
  return parts.filter((part) => part !== null).join(', ');
}
