import { InputError, inputError } from '../../domain/errors.ts';
import {
  CAUSE_SAMPLES,
  CAUSES_MS,
  MAX_REJECT_RAW_BYTES,
  MAX_SAMPLE_CHARS,
  MAX_SHOWN_CAUSES,
  REPLACEMENT_COUNT_MS,
  TRIED_BYTES,
  TRIED_RECORDS,
} from '../../domain/limits.ts';
import { writeCauseId } from '../../domain/reject.ts';
import { type Reader, takeTurns } from '../../postgres/pool.ts';
import { type CountedCause, countCauses, readRejectsPage } from '../../postgres/stores/rejects.ts';
import { readRules } from '../../postgres/stores/rules.ts';
import { type LoadSource, readLoadSource } from '../../postgres/stores/running-loads.ts';
import type { Turn } from '../../sandbox/sandbox.ts';
import type { LoadContext } from '../context.ts';
import { heldAtATime, requireSource } from '../rejects.ts';
import { runLoadTask } from '../sandbox-tasks.ts';
import { type Replacement, readMendId, writeReplacementId } from './mend-ids.ts';
import { type MendedRecord, Mending } from './mending.ts';
import type { ExplainedCause } from './proposals.ts';

/** A cause, with samples of its records and what would mend them. */
export interface ListedCause extends CountedCause, ExplainedCause {}

export interface ListedCauses {
  readonly causes: readonly ListedCause[];
  /** Refused records of the load, and their causes; those that are listed are the first of them. */
  readonly records: number;
  readonly total: number;
}

/**
 * Lists the causes of a load's refused records, the most frequent first, at most MAX_SHOWN_CAUSES. Causes that there is no time for,
 * or whose records take too much, have neither samples nor proposals.
 * @throws InputError `not_found`.
 */
export async function listCauses(
  context: Pick<LoadContext, 'db' | 'sandboxes'>,
  environmentId: number,
  jobId: string,
): Promise<ListedCauses> {
  const { db, sandboxes } = context;
  const source = await readMendSource(context, environmentId, jobId);
  const { loadId } = source;
  const { shown, causes: total, records } = await countCauses(db, loadId, MAX_SHOWN_CAUSES);
  if (shown.length === 0) return { causes: [], records, total };
  const explained: ExplainedCause[] = [];
  const input = { source, causes: shown.map(({ cause }) => cause) };
  const ask = async (at: number) => {
    const counted = shown[at];
    if (counted === undefined) return [];
    const { cause, firstRow } = counted;
    const page = await readRejectsPage(db, loadId, firstRow - 1, bounds, cause);
    return page.rejects;
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

/** Reads a load as what its mends would be loaded as: by the rules that count now. */
async function readMendSource(
  { db }: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<LoadSource> {
  const { loadId } = await requireSource({ db }, environmentId, jobId);
  const source = await readLoadSource(db, loadId);
  return { ...source, rules: (await readRules(db, source.environmentId))?.document ?? null };
}

const unexplained: ExplainedCause = { samples: [], proposals: [] };

const bounds = { rows: TRIED_RECORDS, bytes: TRIED_BYTES, rawBytes: MAX_REJECT_RAW_BYTES };

/**
 * Yields the refused records of a cause as a proposal mends them, in the shape of a file of rejects: CSV for a load of CSV, else NDJSON.
 * Records that a load would still refuse are left out. Memory does not grow with their number.
 * @throws InputError `not_found`, `invalid_field` where there is no such proposal.
 */
export async function* mendedRejects(
  context: Pick<LoadContext, 'db' | 'sandboxes'>,
  environmentId: number,
  jobId: string,
  proposalId: string,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const source = await readMendSource(context, environmentId, jobId);
  const { head } = new Mending(source);
  if (head.length > 0) yield head;
  for await (const mended of mendedPages(context, source, proposalId, { isLong: true, signal })) {
    if (mended.length > 0) yield Buffer.concat(mended.map(({ line }) => line));
  }
}

/** Yields the rejects that a load would now take, page by page, in file order. */
function mendedPages(
  context: Pick<LoadContext, 'db' | 'sandboxes'>,
  source: LoadSource,
  proposalId: string,
  turn: Pick<Turn, 'isLong' | 'signal'>,
): AsyncIterable<readonly MendedRecord[]> {
  const { db, sandboxes } = context;
  const { cause } = readMendId(proposalId);
  const ask = async (after: number) => {
    return readRejectsPage(db, source.loadId, after, heldAtATime, cause);
  };
  const input = { source, proposalId };
  return runLoadTask('mend', { sandboxes, owner: source.environmentId, ...turn, input, ask });
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
 * Counts the refused records that a replacement would mend, and changes none. The count is exact unless the budget runs out.
 * @throws InputError `not_found`, `invalid_field` for a job or column that there is not; what the signal was aborted with.
 */
export async function countReplacement(
  reader: Pick<Reader, 'db' | 'inTurn'> & Pick<LoadContext, 'sandboxes'>,
  environmentId: number,
  jobId: string,
  replacement: Replacement,
  { signal, budgetMs = REPLACEMENT_COUNT_MS }: CountOptions,
): Promise<CountedReplacement> {
  const until = performance.now() + budgetMs;
  const source = await readMendSource(reader, environmentId, jobId);
  if (source.header?.columns.includes(replacement.column) !== true) {
    const message = 'The file of this job has no such column; records of JSON have none';
    throw inputError('invalid_field', message, `column: ${replacement.column.slice(0, 80)}`);
  }
  const samples: MendedRecord[] = [];
  let records = 0;
  let isOver = false;
  const id = writeReplacementId(replacement);
  const pages = mendedPages(reader, source, id, { isLong: false, signal });
  for await (const mended of takeTurns(pages, reader.inTurn)) {
    signal.throwIfAborted();
    if (isOver) return { id, records, isComplete: false, samples };
    records += mended.length;
    samples.push(...mended.slice(0, CAUSE_SAMPLES - samples.length));
    isOver = performance.now() >= until;
  }
  return { id, records, isComplete: true, samples };
}

/* Causes as callers see them, over HTTP and with `--json`. */

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
    proposals: cause.proposals.map(({ isAmbiguous, samples, ...proposal }) => ({
      ...proposal,
      ambiguous: isAmbiguous,
      samples: samples.map(renderSample),
    })),
  };
}

export function renderSample({ reject, before, after }: MendedRecord) {
  return { row: reject.row, before: shorten(before), after: shorten(after) };
}

function shorten(text: string): string {
  const cut = text.length > MAX_SAMPLE_CHARS ? `${text.slice(0, MAX_SAMPLE_CHARS - 1)}…` : text;
  return cut.toWellFormed();
}
