/* Edits of refused records, and how they are sent back. */
import type { Reject } from '../../../../api/reject.ts';

/** The cells of a record that were edited, by the position of the column; or the text of the record. */
export type RecordEdit = ReadonlyMap<number, string> | string;

/** The edits that have not been sent yet, by row. */
export type Edits = ReadonlyMap<number, RecordEdit>;

/** Tells whether each cell of the record has a column to be edited in. If not, the record is edited as text. */
export function hasCells({ cells }: Reject, columns: readonly string[] | null): boolean {
  return columns !== null && cells !== null && cells.length <= columns.length;
}

/** Returns the edited cells of the record, one for each column. */
export function cellsOf({ cells }: Reject, columns: readonly string[], edit?: RecordEdit): readonly string[] {
  return columns.map((_, at) => (typeof edit === 'object' ? edit.get(at) : null) ?? cells?.[at] ?? '');
}

/** Returns the edit with another text in a cell; `null` if nothing is edited any more. */
export function withCell(
  reject: Reject,
  edit: RecordEdit | undefined,
  at: number,
  text: string,
): RecordEdit | null {
  const next = new Map(typeof edit === 'object' ? edit : []);
  if (text === (reject.cells?.[at] ?? '')) next.delete(at);
  else next.set(at, text);
  return next.size === 0 ? null : next;
}

/** Returns the edits as the API takes them: cells that were not touched are not sent. */
export function bodyOf(edits: Edits, columns: readonly string[] | null): unknown {
  const records = [...edits].map(([row, edit]) =>
    typeof edit === 'string'
      ? { row, raw: edit }
      : { row, values: Object.fromEntries([...edit].map(([at, text]) => [columns?.[at] ?? '', text])) },
  );
  return { records };
}

/** Drops the edits of rows that have left this page. Edits of other pages are kept. */
export function stillRefused(edits: Edits, shown: readonly Reject[]): Edits {
  const rows = new Set(shown.map(({ row }) => row));
  const [first = Number.POSITIVE_INFINITY, last = 0] = [shown[0]?.row, shown.at(-1)?.row];
  return new Map([...edits].filter(([row]) => rows.has(row) || row < first || row > last));
}

const bytesPerLine = 16;

/** Returns the lines of a hex dump. */
export function hexLines(raw: string, base64: string | null): string[] {
  const bytes =
    base64 === null
      ? new TextEncoder().encode(raw)
      : Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += bytesPerLine) {
    const part = [...bytes.subarray(at, at + bytesPerLine)];
    const hex = part.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = part.map((byte) => (byte > 0x1f && byte < 0x7f ? String.fromCharCode(byte) : '·')).join('');
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(3 * bytesPerLine - 1)}  ${text}`);
  }
  return lines;
}
