import { MAX_REJECT_RAW_BYTES, REJECT_BYTES_AT_A_TIME, REJECTS_AT_A_TIME } from '../../domain/limits.ts';
import { readLoadSource } from '../../postgres/stores/loads.ts';
import { readRejectsPage } from '../../postgres/stores/rejects.ts';
import type { LoadContext } from '../context.ts';
import { requireSource } from '../rejects.ts';
import { Mending } from './mending.ts';
import { readProposalId } from './proposals.ts';

const heldAtATime = {
  rows: REJECTS_AT_A_TIME,
  bytes: REJECT_BYTES_AT_A_TIME,
  rawBytes: MAX_REJECT_RAW_BYTES,
};

/**
 * The refused records of a cause as a proposal mends them, as a file in the shape of the rejects: CSV for a load of CSV, else NDJSON.
 * Those that a load would still refuse are left out. Memory does not grow with their number.
 * @throws InputError `not_found`, `invalid_field` where there is no such proposal.
 */
export async function* mendedRejects(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
  proposalId: string,
): AsyncGenerator<Buffer> {
  const { cause, mend } = readProposalId(proposalId);
  const { loadId } = await requireSource(context, environmentId, jobId);
  const mending = new Mending(await readLoadSource(context.db, loadId));
  if (mending.head.length > 0) yield mending.head;
  for (let after: number | null = 0; after !== null; ) {
    const { rejects, more } = await readRejectsPage(context.db, loadId, after, heldAtATime, cause);
    const mended = await mending.mend(mend, rejects);
    if (mended.length > 0) yield Buffer.concat(mended.map(({ line }) => line));
    after = more ? (rejects.at(-1)?.row ?? null) : null;
  }
}
