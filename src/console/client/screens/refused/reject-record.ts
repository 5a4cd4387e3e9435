/* Refused records as the API shows them, and the file that mended ones are sent back as. */

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

/** The cells of a record of CSV, or the text of any other. */
export type MendedRecord = readonly string[] | string;

/** What was mended here and is not sent yet, by row. */
export type Mended = ReadonlyMap<number, MendedRecord>;

/** The cells that a record is to have: as it has them, made as many as there are columns. */
export function cellsOf({ cells }: Reject, columns: readonly string[]): readonly string[] {
  return columns.map((_, at) => cells?.[at] ?? '');
}

/** Which cell is at fault; -1: the record as a whole. */
export function faultOf({ column }: Reject, columns: readonly string[]): number {
  return column === null ? -1 : columns.indexOf(column);
}

function inOrder(mended: Mended): [number, MendedRecord][] {
  return [...mended].sort(([a], [b]) => a - b);
}

/** A CSV with the columns of the source, as the download of refused records has it. */
export function toCsv(mended: Mended, columns: readonly string[]): string {
  const own = columns.map((name, at) => [name, at] as const).filter(([name]) => !name.startsWith('sluice_'));
  const head = [...own.map(([name]) => name), 'sluice_row'];
  const lines = inOrder(mended).map(([row, cells]) => [...own.map(([, at]) => cells[at] ?? ''), String(row)]);
  return [head, ...lines].map((cells) => `${cells.map(csvCell).join(',')}\n`).join('');
}

function csvCell(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Lines of JSON; each says at its end which row it mends. */
export function toNdjson(mended: Mended): string {
  return inOrder(mended)
    .map(([row, record]) => {
      const open = String(record).trim().replace(/\}$/, '').trimEnd();
      return `${open}${open === '{' ? '' : ','}"sluice_reject":{"row":${row}}}\n`;
    })
    .join('');
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
  mended: Mended,
  { column, find, by }: Replacement,
): Mended {
  const changed = new Map(mended);
  for (const reject of rejects) {
    const staged = mended.get(reject.row);
    // Of a record whose cells nobody can tell, none is empty.
    if (staged === undefined && reject.cells === null) continue;
    const cells = typeof staged === 'object' ? staged : cellsOf(reject, columns);
    const before = cells[column] ?? '';
    const text = by.replaceAll('{row}', String(reject.row));
    const filled = before === '' ? text : before;
    const after = find === '' ? filled : before.replaceAll(find, () => text);
    if (after !== before) changed.set(reject.row, cells.with(column, after));
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
