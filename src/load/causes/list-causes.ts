import { setImmediate } from 'node:timers/promises';
import {
  CAUSE_SAMPLES,
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
import { Mending } from './mending.ts';
import { type Proposal, proposeMends } from './proposals.ts';
import { createValueReader } from './refused-values.ts';

/** Why records of a load were refused, and what would mend them. */
export interface ListedCause extends CountedCause {
  readonly samples: readonly CauseSample[];
  readonly proposals: readonly Proposal[];
}

interface CauseSample {
  readonly reject: Reject;
  /** What stood in the column at fault; null if that is the record, or not to be found. */
  readonly value: string | null;
}

export interface ListedCauses {
  readonly causes: readonly ListedCause[];
  /** Refused records of the load, and their causes; those that are listed are the first of them. */
  readonly records: number;
  readonly total: number;
}

/**
 * The causes of a load's refused records, the most frequent first, at most MAX_SHOWN_CAUSES of them.
 * @throws InputError `not_found`.
 */
export async function listCauses(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<ListedCauses> {
  const { loadId } = await requireSource(context, environmentId, jobId);
  const { shown, causes: total, records } = await countCauses(context.db, loadId, MAX_SHOWN_CAUSES);
  if (shown.length === 0) return { causes: [], records, total };
  const source = await readLoadSource(context.db, loadId);
  const mending = new Mending(source);
  const readValue = createValueReader(source);
  const causes: ListedCause[] = [];
  for (const counted of shown) {
    const tried = await readTried(context.db, loadId, counted);
    const samples = tried
      .slice(0, CAUSE_SAMPLES)
      .map((reject) => ({ reject, value: textOf(readValue(reject)) }));
    causes.push({ ...counted, samples, proposals: await proposeMends(mending, counted.cause, tried) });
    // Others have their turn.
    await setImmediate();
  }
  return { causes, records, total };
}

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

function textOf(value: unknown): string | null {
  if (value === undefined) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
