import type { Reject, RejectCause } from '../../../../src/domain/reject.ts';
import type { FileRef } from '../../../../src/files/file-store.ts';
import type { CsvHeader } from '../../../../src/formats/csv-header.ts';
import { Mending } from '../../../../src/load/causes/mending.ts';
import { type Proposal, proposeMends } from '../../../../src/load/causes/proposals.ts';
import { RejectCauses } from '../../../../src/load/causes/reject-causes.ts';
import { createChunkReader } from '../../../../src/load/read-chunk.ts';
import { hiddenValues } from '../../../../src/personal/values.ts';
import type { LoadSource } from '../../../../src/postgres/stores/running-loads.ts';

export type CausedReject = Reject & RejectCause;

/** A load of CSV with this header, or of NDJSON. */
export function sourceOf(header: Partial<CsvHeader> | null, more: Partial<LoadSource> = {}): LoadSource {
  return {
    type: 'import',
    loadId: 1,
    jobId: 'job',
    environmentId: 1,
    entity: 'auto',
    acceptedAt: '2026-11-20T00:00:00.000000Z',
    fileRef: 'file' as FileRef,
    fileFormat: header === null ? 'ndjson' : 'csv',
    header: header === null ? null : { delimiter: ',', columns: [], ...header },
    columnMap: {},
    preset: null,
    amends: null,
    pass: 'load',
    dryRun: false,
    maxErrors: null,
    chunkCount: 1,
    yields: null,
    mends: [],
    keepsKeys: false,
    unflags: null,
    namesAliases: false,
    hasSuppressions: false,
    recordKey: '',
    rules: null,
    ...more,
  };
}

/** The records of a body that the loader refuses, with their causes. */
export async function refuse(
  source: LoadSource,
  body: string | Buffer,
  rowCount: number,
): Promise<CausedReject[]> {
  const bytes = Buffer.from(body as string);
  const reader = createChunkReader(source, { readRange: async () => bytes }, hiddenValues);
  const chunk = {
    byteStart: 0,
    byteEnd: bytes.length,
    firstRow: 1,
    firstLine: 2,
    rowCount,
    oversized: false,
  };
  const { rejects } = await reader.read(chunk);
  const causes = new RejectCauses(source);
  return rejects.map((reject) => ({ ...reject, ...causes.of(reject) }));
}

/** What is proposed for the first cause of a body, every record of which is refused. */
export async function propose(
  source: LoadSource,
  records: readonly (string | Buffer)[],
): Promise<{ readonly rejects: readonly CausedReject[]; readonly proposals: readonly Proposal[] }> {
  const body = Buffer.concat(records.flatMap((record) => [Buffer.from(record as string), Buffer.from('\n')]));
  const rejects = await refuse(source, body, records.length);
  const cause = rejects[0]?.cause ?? 0;
  const ofCause = rejects.filter((reject) => reject.cause === cause);
  return { rejects, proposals: await proposeMends(new Mending(source), cause, ofCause) };
}
