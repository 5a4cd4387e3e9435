/**
 * What a CSV file's records are, said as plainly as possible and without regard to speed: on the whole text, with
 * regular expressions. Text is latin1, one character per byte.
 */
export interface ReferenceRecord {
  readonly start: number;
  readonly end: number;
  readonly contentEnd: number;
  readonly blank: boolean;
  readonly quoted: boolean;
  readonly lines: number;
  readonly problem: string | null;
}

interface Extent {
  readonly contentEnd: number;
  readonly end: number;
}

export function referenceCsv(text: string, delimiter: string, maxBytes: number): ReferenceRecord[] {
  const records: ReferenceRecord[] = [];
  for (let start = 0; start < text.length; start = records.at(-1)?.end ?? text.length) {
    records.push(readRecord(text, start, delimiter, maxBytes));
  }
  return records;
}

function readRecord(text: string, start: number, delimiter: string, maxBytes: number): ReferenceRecord {
  const line = lineAt(text, start);
  const record = (extent: Extent, problem: string | null): ReferenceRecord => ({
    start,
    ...extent,
    blank: extent.contentEnd === start,
    quoted: text.slice(start, extent.contentEnd).includes('"'),
    lines: text.slice(start, extent.end).match(/\r\n|\r|\n/g)?.length ?? 0,
    problem,
  });
  if (line.contentEnd - start > maxBytes) return record(line, 'record_too_large');
  const { at, found } = walkCells(text, start, delimiter);
  if (found === 'garbage' && at < line.contentEnd) return record(line, 'invalid_quote');
  if (found === 'garbage' || found === 'unclosed') return record(line, 'unclosed_quote');
  const whole = lineAt(text, at);
  if (whole.contentEnd - start > maxBytes) return record(line, 'unclosed_quote');
  return record(whole, found === 'stray' ? 'invalid_quote' : null);
}

/** Terminator at or after `at`. */
function lineAt(text: string, at: number): Extent {
  const match = /\r\n|\r|\n/.exec(text.slice(at));
  if (match === null) return { contentEnd: text.length, end: text.length };
  return { contentEnd: at + match.index, end: at + match.index + match[0].length };
}

function walkCells(
  text: string,
  start: number,
  delimiter: string,
): { at: number; found: 'end' | 'stray' | 'garbage' | 'unclosed' } {
  let at = start;
  for (;;) {
    const isQuoted = text[at] === '"';
    const cell = isQuoted ? /"(?:[^"]|"")*"(?!")/y : new RegExp(`[^"\\r\\n${delimiter}]*`, 'y');
    cell.lastIndex = at;
    const match = cell.exec(text);
    if (match === null) return { at, found: 'unclosed' };
    at += match[0].length;
    const next = text[at];
    if (next === undefined || next === '\n' || next === '\r') return { at, found: 'end' };
    if (next !== delimiter) return { at, found: isQuoted ? 'garbage' : 'stray' };
    at++;
  }
}
