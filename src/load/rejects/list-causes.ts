import { InputError } from '../../base/errors.ts';
import { KiB, MAX_REJECT_RAW_BYTES } from '../../base/limits.ts';
import { runTask } from '../../base/sandbox/sandboxes.ts';
import { writeCauseId } from '../../domain/reject.ts';
import type { LoadContext } from '../context.ts';
import { CAUSE_SAMPLES, MAX_SAMPLE_CHARS, MAX_SHOWN_CAUSES } from '../limits.ts';
import { readLoadSource } from '../running-store.ts';
import { sampleCauses } from '../sandbox-tasks.ts';
import type { CauseSample } from './causes.ts';
import { requireSource } from './rejects.ts';
import { type CountedCause, countCauses, readRejectsPage } from './store.ts';

/** For finding samples. */
const CAUSES_MS = 10_000;
const SAMPLE_BYTES = 256 * KiB;

export interface ListedCause extends CountedCause {
  readonly samples: readonly CauseSample[];
}

interface ListedCauses {
  /** Most frequent first. */
  readonly causes: readonly ListedCause[];
  /** Number of all refused records of the load. */
  readonly records: number;
  /** Number of all causes. */
  readonly total: number;
}

/**
 * Lists the causes of a job's rejects. Causes have no samples if finding the samples takes too much
 * time or space.
 * @throws InputError `not_found`
 */
export async function listCauses(
  context: Pick<LoadContext, 'db' | 'sandboxes'>,
  environmentId: number,
  jobId: string,
): Promise<ListedCauses> {
  const { db, sandboxes } = context;
  const { loadId } = await requireSource({ db }, environmentId, jobId);
  const { shown, causes: total, records } = await countCauses(db, loadId, MAX_SHOWN_CAUSES);
  if (shown.length === 0) return { causes: [], records, total };
  const { header, columnMap } = await readLoadSource({ db, loads: [], secrets: [] }, loadId);
  const samples: (readonly CauseSample[])[] = [];
  const input = { source: { header, columnMap }, causes: shown.length };
  const ask = async (at: number) => {
    const counted = shown[at];
    if (counted === undefined) return [];
    const { cause, firstRow } = counted;
    const page = await readRejectsPage(db, loadId, firstRow - 1, bounds, cause);
    return page.rejects;
  };
  const signal = AbortSignal.timeout(CAUSES_MS);
  const work = { owner: environmentId, isLong: false, input, ask, signal };
  try {
    for await (const each of runTask(sandboxes, 'causes', sampleCauses, work)) samples.push(each);
  } catch (error) {
    const isTooMuch = error instanceof InputError && error.problems[0].code === 'payload_too_large';
    if (!signal.aborted && !isTooMuch) throw error;
  }
  const causes = shown.map((counted, at) => ({ ...counted, samples: samples[at] ?? [] }));
  return { causes, records, total };
}

const bounds = { rows: CAUSE_SAMPLES, bytes: SAMPLE_BYTES, rawBytes: MAX_REJECT_RAW_BYTES };

export function renderCauses({ causes, records, total }: ListedCauses) {
  const listed = causes.reduce((sum, { count }) => sum + count, 0);
  return {
    data: causes.map(renderCause),
    metadata: {
      total_count: records,
      causes: total,
      other_causes: total - causes.length,
      other_count: records - listed,
    },
  };
}

function renderCause(cause: ListedCause) {
  return {
    id: writeCauseId(cause.cause),
    error_code: cause.code,
    column: cause.column,
    shape: cause.shape === '' ? null : cause.shape,
    count: cause.count,
    first_row: cause.firstRow,
    samples: cause.samples.map(({ reject, value }) => ({
      row: reject.row,
      line: reject.line,
      value: value === null ? null : shorten(value),
      raw: shorten(Buffer.from(reject.raw).toString('utf8')),
    })),
  };
}

function shorten(text: string): string {
  const cut = text.length > MAX_SAMPLE_CHARS ? `${text.slice(0, MAX_SAMPLE_CHARS - 1)}…` : text;
  return cut.toWellFormed();
}
