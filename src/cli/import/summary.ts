import type { Load } from '../../domain/load.ts';
import { formatCount, formatDuration } from '../format-numbers.ts';
import { renderTable } from '../table.ts';
import { rowsPerSecond } from './progress.ts';

/** The counts of a load as a table of one line, under its heads. */
export function summarise(load: Load): string[] {
  const { read, inserted, updated, unchanged, superseded, rejected } = load.tally;
  const titles = ['read', 'inserted', 'updated', 'unchanged', 'superseded', 'rejected', 'time', 'rows/s'];
  const cells = [read, inserted, updated, unchanged, superseded, rejected].map(formatCount);
  const rate = rowsPerSecond(load, Date.now());
  const ms = (load.endedAt?.getTime() ?? Date.now()) - load.acceptedAt.getTime();
  cells.push(formatDuration(ms / 1000), rate === null ? '–' : formatCount(rate));
  return renderTable(
    titles.map((title) => ({ title, align: 'right' as const })),
    [cells],
  );
}
