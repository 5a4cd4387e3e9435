import { InputError } from '../../domain/errors.ts';
import {
  CAUSES_MS,
  MAX_REJECT_RAW_BYTES,
  MAX_SHOWN_CAUSES,
  TRIED_BYTES,
  TRIED_RECORDS,
} from '../../domain/limits.ts';
import type { Reject } from '../../domain/reject.ts';
import type { Database } from '../../postgres/database.ts';
import {
  type CountedCause,
  countCauses,
  readLastRejects,
  readRejectsPage,
} from '../../postgres/stores/rejects.ts';
import { readLoadSource } from '../../postgres/stores/running-loads.ts';
import type { LoadContext } from '../context.ts';
import { requireSource } from '../rejects.ts';
import { runLoadTask } from '../sandbox-tasks.ts';
import type { ExplainedCause } from './explain-cause.ts';

/** Why records of a load were refused, and what would mend them. */
export interface ListedCause extends CountedCause, ExplainedCause {}

export interface ListedCauses {
  readonly causes: readonly ListedCause[];
  /** Refused records of the load, and their causes; those that are listed are the first of them. */
  readonly records: number;
  readonly total: number;
}

/**
 * The causes of a load's refused records, the most frequent first, at most MAX_SHOWN_CAUSES of them. Those that there is no time for,
 * or whose records take too much, have neither samples nor proposals.
 * @throws InputError `not_found`.
 */
export async function listCauses(
  context: Pick<LoadContext, 'db' | 'sandboxes'>,
  environmentId: number,
  jobId: string,
): Promise<ListedCauses> {
  const { loadId } = await requireSource(context, environmentId, jobId);
  const { shown, causes: total, records } = await countCauses(context.db, loadId, MAX_SHOWN_CAUSES);
  if (shown.length === 0) return { causes: [], records, total };
  const explained: ExplainedCause[] = [];
  const { db, sandboxes } = context;
  const input = { source: await readLoadSource(db, loadId), causes: shown.map(({ cause }) => cause) };
  const ask = async (at: number) => {
    const counted = shown[at];
    return counted === undefined ? [] : readTried(db, loadId, counted);
  };
  const signal = AbortSignal.timeout(CAUSES_MS);
  const work = { sandboxes, owner: environmentId, isLong: false, input, ask, signal };
  try {
    for await (const each of runLoadTask('causes', work)) explained.push(each);
  } catch (error) {
    const isTooMuch = error instanceof InputError && error.problems[0].code === 'payload_too_large';
    if (!signal.aborted && !isTooMuch) throw error;
  }
  const causes = shown.map((counted, at) => ({ ...counted, ...(explained[at] ?? unexplained) }));
  return { causes, records, total };
}

const unexplained: ExplainedCause = { samples: [], proposals: [] };

const lastTried = TRIED_RECORDS / 4;
const bounds = { rows: TRIED_RECORDS - lastTried, bytes: TRIED_BYTES, rawBytes: MAX_REJECT_RAW_BYTES };

/** The first records of a cause and, of many, the last: what is written otherwise at the end of a file shows. */
async function readTried(db: Database, loadId: number, { cause, firstRow }: CountedCause): Promise<Reject[]> {
  const { rejects, more } = await readRejectsPage(db, loadId, firstRow - 1, bounds, cause);
  if (!more) return [...rejects];
  const after = rejects.at(-1)?.row ?? firstRow;
  const bytes = rejects.reduce((sum, { raw }) => sum + raw.length, 0);
  const rows = Math.min(lastTried, Math.floor((lastTried * rejects.length) / bounds.rows));
  const isLarge = bytes / rejects.length > TRIED_BYTES / TRIED_RECORDS;
  return isLarge
    ? [...rejects]
    : [
        ...rejects,
        ...(await readLastRejects(db, loadId, after, { rows, rawBytes: MAX_REJECT_RAW_BYTES }, cause)),
      ];
}
