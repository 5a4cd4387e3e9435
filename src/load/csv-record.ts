import { isUtf8 } from 'node:buffer';
import { MAX_REJECT_RAW_BYTES } from '../domain/limits.ts';
import { createCsvScanner } from '../formats/csv-scanner.ts';

/** A cell as CSV has it, quoted where it must be. */
export function csvCell(text: string, delimiter: string): string {
  const plain = !text.includes(delimiter) && !/["\r\n]|^\s|\s$/.test(text);
  return plain ? text : `"${text.replaceAll('"', '""')}"`;
}

/**
 * The cells of a record, quotes and all, or null if it is not exactly one well-formed record of proper text: one that may
 * have been cut off is not.
 */
export function splitRecord(raw: Buffer, delimiter: string): string[] | null {
  if (raw.length === 0 || raw.length >= MAX_REJECT_RAW_BYTES || raw.includes(0) || !isUtf8(raw)) return null;
  const scanner = createCsvScanner(delimiter.charCodeAt(0));
  scanner.next(raw, 0, raw.length, true);
  if (scanner.problem !== null || scanner.contentEnd !== raw.length) return null;
  return splitCells(raw.toString('utf8'), delimiter);
}

/** Quotes come in pairs in a well-formed record, doubled ones too: every other one opens. */
function splitCells(text: string, delimiter: string): string[] {
  const cells: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') quoted = !quoted;
    else if (text[at] === delimiter && !quoted) {
      cells.push(text.slice(start, at));
      start = at + 1;
    }
  }
  cells.push(text.slice(start));
  return cells;
}

/** What a cell of `splitRecord` holds. */
export function cellText(cell: string): string {
  return cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
}
