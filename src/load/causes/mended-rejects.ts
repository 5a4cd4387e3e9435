import { inputError } from '../../domain/errors.ts';
import {
  CAUSE_SAMPLES,
  MAX_REJECT_RAW_BYTES,
  REJECT_BYTES_AT_A_TIME,
  REJECTS_AT_A_TIME,
  REPLACEMENT_COUNT_MS,
} from '../../domain/limits.ts';
import { type Reader, takeTurns } from '../../postgres/pool.ts';
import { readRejectsPage } from '../../postgres/stores/rejects.ts';
import { type LoadSource, readLoadSource } from '../../postgres/stores/running-loads.ts';
import type { Turn } from '../../sandbox/sandbox.ts';
import type { LoadContext } from '../context.ts';
import { requireSource } from '../rejects.ts';
import { runLoadTask } from '../sandbox-tasks.ts';
import { type MendedRecord, Mending } from './mending.ts';
import { readProposalId } from './proposals.ts';
import { type ScopedReplacement, writeReplacementId } from './replacement.ts';

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
  context: Pick<LoadContext, 'db' | 'sandboxes'>,
  environmentId: number,
  jobId: string,
  proposalId: string,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { cause } = readProposalId(proposalId);
  const { loadId } = await requireSource(context, environmentId, jobId);
  const source = await readLoadSource(context.db, loadId);
  const { head } = new Mending(source);
  if (head.length > 0) yield head;
  const scoped = { cause, proposalId };
  for await (const mended of mendedPages(context, source, scoped, { environmentId, isLong: true, signal })) {
    if (mended.length > 0) yield Buffer.concat(mended.map(({ line }) => line));
  }
}

/** A mend, and which refused records it is tried on; null: all. */
interface ScopedMend {
  readonly cause: number | null;
  readonly proposalId: string;
}

interface Asker extends Pick<Turn, 'isLong' | 'signal'> {
  readonly environmentId: number;
}

/** Yields the rejects that a load would now take, page by page, in file order. */
function mendedPages(
  { db, sandboxes }: Pick<LoadContext, 'db' | 'sandboxes'>,
  source: LoadSource,
  { cause, proposalId }: ScopedMend,
  { environmentId, ...turn }: Asker,
): AsyncIterable<readonly MendedRecord[]> {
  const ask = (after: number) => readRejectsPage(db, source.loadId, after, heldAtATime, cause);
  const input = { source, proposalId };
  return runLoadTask('mend', { sandboxes, owner: environmentId, ...turn, input, ask });
}

export interface CountedReplacement {
  readonly id: string;
  /** Records that it changes and that a load would take then. */
  readonly records: number;
  /** False: counting took too long, and `records` is the least that there are. */
  readonly isComplete: boolean;
  /** The first of them. */
  readonly samples: readonly MendedRecord[];
}

export interface CountOptions {
  /** Nobody waits for the number any more. */
  readonly signal: AbortSignal;
  readonly budgetMs?: number;
}

/**
 * What a replacement comes to: it goes through all refused records that it is about, and changes none. What can be counted within the
 * budget is counted exactly.
 * @throws InputError `not_found`, `invalid_field` for a job or column that there is not; what the signal was aborted with.
 */
export async function countReplacement(
  reader: Pick<Reader, 'db' | 'inTurn'> & Pick<LoadContext, 'sandboxes'>,
  environmentId: number,
  jobId: string,
  replacement: ScopedReplacement,
  { signal, budgetMs = REPLACEMENT_COUNT_MS }: CountOptions,
): Promise<CountedReplacement> {
  const until = performance.now() + budgetMs;
  const { loadId } = await requireSource(reader, environmentId, jobId);
  const source = await readLoadSource(reader.db, loadId);
  if (source.header?.columns.includes(replacement.column) !== true) {
    const message = 'The file of this job has no such column; records of JSON have none';
    throw inputError('invalid_field', message, `column: ${replacement.column.slice(0, 80)}`);
  }
  const samples: MendedRecord[] = [];
  let records = 0;
  let isOver = false;
  const id = writeReplacementId(replacement);
  const scoped = { cause: replacement.cause, proposalId: id };
  const pages = mendedPages(reader, source, scoped, { environmentId, isLong: false, signal });
  for await (const mended of takeTurns(pages, reader.inTurn)) {
    signal.throwIfAborted();
    if (isOver) return { id, records, isComplete: false, samples };
    records += mended.length;
    samples.push(...mended.slice(0, CAUSE_SAMPLES - samples.length));
    isOver = performance.now() >= until;
  }
  return { id, records, isComplete: true, samples };
}
