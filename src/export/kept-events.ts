import type { ExportRequest, ExportWarning } from '../domain/export.ts';
import type { Database } from '../postgres/database.ts';
import { findKeptFrom } from '../postgres/retirements.ts';
import { microsOf } from './filter.ts';

/**
 * Retention may have removed events before the returned instant. `null` if the range does not begin
 * before it.
 */
export async function findLaterStart(
  db: Database,
  { datasets, since, from }: Pick<ExportRequest, 'datasets' | 'since' | 'from'>,
): Promise<string | null> {
  if (!datasets.includes('events') || since !== null) return null;
  const keptFrom = await findKeptFrom(db);
  return keptFrom === null || (from !== null && microsOf(from) >= microsOf(keptFrom)) ? null : keptFrom;
}

export async function findEventWarnings(
  db: Database,
  request: ExportRequest,
): Promise<readonly ExportWarning[]> {
  const keptFrom = await findLaterStart(db, request);
  if (keptFrom === null) return [];
  const message = `The range begins before ${keptFrom}. Retention may have removed older events or moved them to the lake`;
  return [{ message, details: 'from' }];
}
