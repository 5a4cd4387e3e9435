/* Refused records as the API shows them, and the edits that are sent back. */

export interface Reject {
  readonly row: number;
  readonly line: number;
  readonly column: string | null;
  readonly error_code: string;
  readonly message: string;
  readonly raw: string;
  readonly raw_base64: string | null;
  readonly cells: readonly string[] | null;
}

export interface RejectPage {
  readonly data: readonly Reject[];
  readonly metadata: {
    readonly cursor: { readonly after: string | null };
    readonly total_count: number;
    readonly columns: readonly string[] | null;
  };
}

export interface Proposal {
  readonly id: string;
  readonly sentence: string;
  readonly tried: number;
  readonly accepted: number;
  readonly ambiguous: boolean;
  readonly samples: readonly { readonly row: number; readonly before: string; readonly after: string }[];
}

export interface Cause {
  readonly id: string;
  readonly error_code: string;
  readonly column: string | null;
  readonly shape: string | null;
  readonly count: number;
  readonly samples: readonly { readonly row: number; readonly value: string | null; readonly raw: string }[];
  readonly proposals: readonly Proposal[];
}

/** The cells of a record that were edited, by the position of the column; or the text of the record. */
export type RecordEdit = ReadonlyMap<number, string> | string;

/** The edits that have not been sent yet, by row. */
export type Edits = ReadonlyMap<number, RecordEdit>;

/** Tells whether each cell of the record has a column to be edited in. If not, the record is edited as text. */
export function hasCells({ cells }: Reject, columns: readonly string[] | null): boolean {
  return columns !== null && cells !== null && cells.length <= columns.length;
}

/** The cells of the record, edited, as many as there are columns. */
export function cellsOf({ cells }: Reject, columns: readonly string[], edit?: RecordEdit): readonly string[] {
  const edited = typeof edit === 'object' ? edit : null;
  return columns.map((_, at) => edited?.get(at) ?? cells?.[at] ?? '');
}

/** The edit with another text in a cell; null where nothing is edited any more. */
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

/** Returns the index of the cell at fault; -1 for the record as a whole. */
export function faultOf({ column }: Reject, columns: readonly string[]): number {
  return column === null ? -1 : columns.indexOf(column);
}

/** The edits as the API takes them: what was not touched is not sent. */
export function bodyOf(edits: Edits, columns: readonly string[] | null): unknown {
  const records = [...edits].map(([row, edit]) =>
    typeof edit === 'string'
      ? { row, raw: edit }
      : { row, values: Object.fromEntries([...edit].map(([at, text]) => [columns?.[at] ?? '', text])) },
  );
  return { records };
}

/** What is to be replaced, in one column. */
export interface Replacement {
  readonly column: number;
  /** Empty: cells with nothing in them. */
  readonly find: string;
  /** `{row}` in it stands for the number of the record. */
  readonly by: string;
}

/** With the records in which something was found and replaced. */
export function replaceIn(
  rejects: readonly Reject[],
  columns: readonly string[],
  edits: Edits,
  { column, find, by }: Replacement,
): Edits {
  const changed = new Map(edits);
  for (const reject of rejects) {
    if (!hasCells(reject, columns)) continue;
    const edit = edits.get(reject.row);
    const before = cellsOf(reject, columns, edit)[column] ?? '';
    const text = by.replaceAll('{row}', String(reject.row));
    const filled = before === '' ? text : before;
    const after = find === '' ? filled : before.replaceAll(find, () => text);
    if (after === before) continue;
    const next = withCell(reject, edit, column, after);
    if (next === null) changed.delete(reject.row);
    else changed.set(reject.row, next);
  }
  return changed;
}

const bytesPerLine = 16;

/** Bytes as a hex dump shows them. */
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
