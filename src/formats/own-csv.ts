import { automaticProperties } from '../domain/entity.ts';
import { defuse, isDefused } from '../domain/formula.ts';
import { isRejectColumn } from '../domain/reject.ts';

/*
 * The header of a CSV that we wrote ourselves, and how a load knows it again. In exports whose formulas are defused the first name
 * is in quotes that it does not need, in all others the last. No CSV reader notices, and no other program writes so; one that
 * writes an export again leaves the quotes out. Then the columns are ours and the file may not be: see `DefusedCells`.
 */

/**
 * What an apostrophe before a formula means in a file (`src/domain/formula.ts`). `undone`: we put it there, and the load takes it
 * off. `doubtful`: the file has the columns of an export, but nothing says that we wrote it: the load refuses such a cell.
 * `kept`: it is part of the value.
 */
export type DefusedCells = 'undone' | 'doubtful' | 'kept';

/** The columns of exports that have events: a file of events, and one of all kinds. */
const exportedEvents: ReadonlySet<string> = new Set([
  'event_id,event_type,event_name,user_id,company_id,source,inserted_at,metadata',
  'event_type,user_id,company_id,inserted_at,event_name,source,metadata',
]);

/** Names that hold what could pass for another delimiter are quoted: a load finds the delimiter from the header. */
export function exportHeader(names: readonly string[], escapeFormulas: boolean): string {
  const marked = escapeFormulas ? 0 : names.length - 1;
  const cells = names.map((name, index) => {
    const cell = escapeFormulas ? defuse(name) : name;
    return index === marked || /[",;|\t\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  });
  return cells.join(',');
}

/** Whether a file with these columns may be one that we wrote. */
export function isOwnHeader(columns: readonly string[]): boolean {
  if (columns.some(isRejectColumn)) return true;
  return automaticProperties.every((name) => columns.includes(name)) || exportedEvents.has(columns.join(','));
}

/** Of a file with these columns, as read from the header `text`. A file of refused records is known by columns of its own. */
export function findDefusedCells(columns: readonly string[], text: string): DefusedCells {
  if (columns.some(isRejectColumn)) return 'undone';
  const hasEvents = exportedEvents.has(columns.join(','));
  if (!hasEvents && !automaticProperties.every((name) => columns.includes(name))) return 'kept';
  // An export of profiles ends in these two; what another program added is not ours.
  if (!hasEvents && !automaticProperties.every((name, at) => columns.at(at - 2) === name)) return 'doubtful';
  const header = text.trimEnd();
  if (header === exportHeader(columns, false)) return 'kept';
  // Names that are defused already are not defused twice.
  const plain = columns.map((name) => (isDefused(name) ? name.slice(1) : name));
  return header === exportHeader(plain, true) ? 'undone' : 'doubtful';
}
