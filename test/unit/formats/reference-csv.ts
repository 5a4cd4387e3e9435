/**
 * Where a well-formed CSV record ends, said as plainly as possible and without regard to speed: on the whole text, with
 * regular expressions. Text is latin1, one character per byte. Null: what starts at `start` is no well-formed record.
 */
export function referenceRecord(
  text: string,
  start: number,
  delimiter: string,
): { readonly contentEnd: number; readonly end: number } | null {
  let at = start;
  for (;;) {
    const isQuoted = text[at] === '"';
    const cell = isQuoted ? /"(?:[^"]|"")*"(?!")/y : new RegExp(`[^"\\r\\n${delimiter}]*`, 'y');
    cell.lastIndex = at;
    const match = cell.exec(text);
    if (match === null) return null;
    at += match[0].length;
    const next = text[at];
    if (next === undefined) return { contentEnd: at, end: at };
    if (next === '\n' || next === '\r') {
      return { contentEnd: at, end: at + (text.startsWith('\r\n', at) ? 2 : 1) };
    }
    if (next !== delimiter) return null;
    at++;
  }
}
