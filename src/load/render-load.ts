import { isUtf8 } from 'node:buffer';
import type { LoadPlan, ValueChanges } from '../domain/load.ts';
import type { Reject } from '../domain/reject.ts';
import type { CsvReadAs, ReadAs } from '../domain/source.ts';
import { splitBytes } from '../formats/utf8.ts';
import { loadUrl, rateOf, render, renderJobListItem, renderRun } from '../http/render.ts';
import type { ShownPlan } from './plans/plans.ts';
import type { Load, LoadResult, Shown } from './read-store.ts';
import type { ListedReject } from './rejects/rejects.ts';

/* Converts loads to records for the API, for events and for `--json`. */

export function renderLoadRun(load: Load, { history, byCode }: LoadResult, baseUrl: string) {
  const { filename, fileSize: bytes, totalRows: rows, sha256, tally: counts } = load;
  return renderRun({
    ...load,
    ...history,
    sources: [{ filename, bytes, rows, sha256 }],
    files: [],
    counts,
    rejects: {
      count: counts.rejected,
      by_code: byCode,
      links: counts.rejected === 0 ? null : `${loadUrl(baseUrl, load.jobId)}/rejects`,
    },
    cursor: null,
  });
}

export function renderLoadDetail(
  load: Load,
  { fields }: Pick<Shown, 'fields'>,
  result: LoadResult,
  baseUrl: string,
  now = new Date(),
) {
  const run = renderLoadRun(load, result, baseUrl);
  const item = renderJobListItem(load, baseUrl, now);
  return {
    ...run,
    ...item,
    completed_rows: load.tally.read,
    progress: progress(load),
    counts_by_kind: load.tallyByKind,
    rejects: { ...run.rejects, loaded_since: load.loadedSince ?? { count: 0, jobs: [] } },
    dropped_properties: load.droppedProperties,
    held: load.held && render(load.held),
    last_error: load.lastError,
    attempts: load.attempts,
    rows_per_second: rowsPerSecond(load, now),
    queue_position: load.queuePosition,
    duplicate_of: load.duplicateOf,
    mends: load.mends,
    dry_run: load.dryRun,
    ...fields,
    plan: load.plan && renderPlan(load.plan, item.links),
    read_as: load.readAs && renderReadAs(load.readAs),
  };
}

function renderPlan({ summary, plannedAt, appliedAt, onDrift }: LoadPlan, jobUrl: string) {
  return {
    planned_at: plannedAt.toISOString(),
    applied_at: appliedAt?.toISOString() ?? null,
    on_drift: onDrift,
    counts: summary.counts,
    counts_by_kind: summary.countsByKind,
    profiles: summary.profiles,
    values: renderChanges(summary.values),
    links: `${jobUrl}/plan`,
  };
}

function renderChanges({ appear, change, go, retype }: ValueChanges) {
  return { appear, change, go, change_type: retype };
}

/**
 * Returns a plan as JSON text. Contains the rows as PostgreSQL wrote them, because numbers in
 * JavaScript could lose digits.
 */
export function planJson({ jobId, sample, ...plan }: ShownPlan, baseUrl: string): string {
  const { properties, morePropertyNames, events } = plan.summary;
  const rows = sample.map(
    (row) =>
      `{"entity":"${row.entity}","id":${JSON.stringify(row.key)},"before":${row.before},"after":${row.after},` +
      `"company_before":${JSON.stringify(row.companyBefore)},"company_after":${JSON.stringify(row.companyAfter)},` +
      `"more_properties":${row.moreProperties}}`,
  );
  const rest = JSON.stringify({
    job_id: jobId,
    ...renderPlan(plan, loadUrl(baseUrl, jobId)),
    properties: properties.map(({ entity, name, isNew, ...values }) => ({
      entity,
      name,
      ...renderChanges(values),
      is_new: isNew,
    })),
    more_properties: morePropertyNames,
    events: {
      ...{ names: events.names, more_names: events.moreNames },
      ...{ days: events.days, earlier_days: events.earlierDays },
    },
  });
  return `${rest.slice(0, -1)},"sample":[${rows.join(',')}]}`;
}

export function renderReadAs({ csv, sheets, notes, ...readAs }: ReadAs) {
  const named = sheets && [...sheets];
  return { ...readAs, csv: csv && renderCsvReadAs(csv), sheets: named, notes: [...notes] };
}

function renderCsvReadAs({ nulls, headerLine, columns, columnCount, ...dialect }: CsvReadAs) {
  return {
    ...dialect,
    nulls: [...nulls],
    header_line: headerLine,
    columns: [...columns],
    column_count: columnCount,
  };
}

/** Returns the progress of a load, from 0 to 1, with four decimal places. */
function progress({ status, tally, totalRows }: Load): number {
  if (status === 'completed') return 1;
  return totalRows === 0 ? 0 : Math.floor((tally.read / totalRows) * 10_000) / 10_000;
}

export function rowsPerSecond(load: Load, now: Date): number | null {
  return rateOf(load.tally.read - load.rowsBefore, load, now);
}

/** In `raw`, U+FFFD replaces invalid UTF-8, and `…` marks a truncated record. */
export function renderReject(reject: Reject & Partial<Pick<ListedReject, 'isCut' | 'cells'>>) {
  const bytes = Buffer.from(reject.raw);
  // A truncated record may end with an incomplete character.
  const whole = reject.isCut ? bytes.subarray(0, bytes.length - splitBytes(bytes)) : bytes;
  return {
    row: reject.row,
    line: reject.line,
    byte_offset: reject.byteOffset,
    column: reject.column,
    error_code: reject.code,
    message: reject.message,
    raw: reject.isCut ? `${whole.toString('utf8')}…` : whole.toString('utf8'),
    raw_base64: isUtf8(whole) ? null : bytes.toString('base64'),
    cells: reject.cells == null ? null : [...reject.cells],
  };
}
