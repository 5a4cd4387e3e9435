import type { Logger } from 'pino';
import type { Report } from '../api/report.ts';
import { inputError, TransientError } from '../domain/errors.ts';
import { defuse } from '../domain/formula.ts';
import { readRangeEnd } from '../domain/instant.ts';
import { REPORT_MS } from '../domain/limits.ts';
import { csvCell } from '../formats/csv-text.ts';
import type { Reader } from '../postgres/pool.ts';
import { inSnapshot } from '../postgres/session.ts';
import { findArchivedUntil } from '../postgres/stores/events.ts';
import { readReport } from '../postgres/stores/report.ts';

/** The range of a report: days of UTC, both included, or instants, of which the last is not. */
export interface AskedRange {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Counts what an environment has, all of one moment. @throws InputError `invalid_range`. */
export async function makeReport(
  { reader, log }: { readonly reader: Reader; readonly log: Logger },
  environmentId: number,
  asked: AskedRange,
): Promise<Report> {
  const from = readRangeEnd(asked.from)?.start ?? null;
  const to = readRangeEnd(asked.to)?.after ?? null;
  if (from !== null && to !== null && from >= to)
    throw inputError('invalid_range', 'from lies after to', 'from');
  const signal = AbortSignal.timeout(REPORT_MS);
  const work = () =>
    inSnapshot({ pool: reader.pool, log }, { name: 'sluice report', signal }, ({ client }) =>
      readReport(client, environmentId, { from, to }),
    );
  const found = await reader.inTurn(work).catch((error: unknown) => {
    throw signal.aborted ? new TransientError('the report takes too long') : error;
  });
  return { ...found, archived_until: await findArchivedUntil(reader.db, environmentId) };
}

/** Writes the events by day and name as CSV. Names that a spreadsheet would run get an apostrophe. */
export function reportCsv({ days }: Pick<Report, 'days'>): string {
  const lines = days.map((row) => `${row.day},${csvCell(defuse(row.event_name))},${row.events}\n`);
  return `day,event_name,events\n${lines.join('')}`;
}
