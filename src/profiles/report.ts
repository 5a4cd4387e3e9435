import type { Report } from '../api/report.ts';
import { inputError, TookTooLong } from '../domain/errors.ts';
import { defuse } from '../domain/formula.ts';
import { readRangeEnd } from '../domain/instant.ts';
import { REPORT_MS } from '../domain/limits.ts';
import { ColdCounts, readColdEvents } from '../export/write/cold-events.ts';
import { csvCell } from '../formats/csv-text.ts';
import { inSnapshot } from '../postgres/session.ts';
import { readReport, usersOfReport } from '../postgres/stores/report.ts';
import type { Sources } from './segments.ts';

/** The range of a report: days of UTC, both included, or instants, of which the last is not. */
export interface AskedRange {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Counts what an environment has, all of one moment. @throws InputError `invalid_range`. */
export async function makeReport(
  { reader, files, log }: Sources,
  environmentId: number,
  asked: AskedRange,
): Promise<Report> {
  const from = readRangeEnd(asked.from)?.start ?? null;
  const to = readRangeEnd(asked.to)?.after ?? null;
  if (from !== null && to !== null && from >= to)
    throw inputError('invalid_range', 'from lies after to', 'from');
  const signal = AbortSignal.timeout(REPORT_MS);
  const work = () =>
    inSnapshot({ pool: reader.pool, log }, { name: 'sluice report', signal }, async ({ client }) => {
      const counts = new ColdCounts(client);
      const until = await readColdEvents(
        { client, files },
        environmentId,
        { from, to },
        {
          signal,
          counts,
          take(event) {
            counts.add(usersOfReport, event.text('user_id'));
            counts.add(Math.floor(event.micros / dayMicros), event.text('event_name'));
          },
        },
      );
      if (until !== null) await counts.end();
      return readReport(client, environmentId, { from: until ?? from, to });
    });
  return reader.inTurn(work).catch((error: unknown) => {
    throw signal.aborted ? new TookTooLong() : error;
  });
}

const dayMicros = 86_400_000_000;

/** Writes the events by day and name as CSV. Names that a spreadsheet would run get an apostrophe. */
export function reportCsv({ days }: Pick<Report, 'days'>): string {
  const lines = days.map((row) => `${row.day},${csvCell(defuse(row.event_name))},${row.events}\n`);
  return `day,event_name,events\n${lines.join('')}`;
}
