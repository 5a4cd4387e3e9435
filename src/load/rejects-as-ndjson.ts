import { isUtf8 } from 'node:buffer';
import { undoDefuse } from '../domain/formula.ts';
import type { Reject } from '../domain/reject.ts';
import { isRejectColumn, rejectKey, rejectRawKey } from '../domain/reject-columns.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { createRecordSplitter } from './csv-record.ts';
import { readableText } from './readable-text.ts';

/**
 * A file of rejects as NDJSON: each record as it was written, with the reason added under one key. What is no object is
 * the text of `sluice_raw`; sent again unmended it has no id and is refused again.
 */
export class RejectsAsNdjson {
  readonly head = Buffer.alloc(0);
  readonly #csv: ((raw: Buffer) => string | null) | null;

  constructor(header: CsvHeader | null) {
    this.#csv = header === null ? null : createCsvReader(header);
  }

  line(reject: Reject): Buffer {
    const reason = JSON.stringify({
      row: reject.row,
      line: reject.line,
      byte_offset: reject.byteOffset,
      error_code: reject.code,
      message: reject.message,
      column: reject.column,
    });
    const object = this.#object(reject.raw) ?? JSON.stringify({ [rejectRawKey]: readableText(reject.raw) });
    const comma = object === '{}' ? '' : ',';
    return Buffer.from(`${object.slice(0, -1)}${comma}"${rejectKey}":${reason}}\n`);
  }

  /** The text of the object that the record is. */
  #object(raw: Uint8Array): string | null {
    if (this.#csv !== null) return this.#csv(Buffer.from(raw));
    return isUtf8(raw) ? jsonObject(Buffer.from(raw).toString('utf8').trim()) : null;
  }
}

/** Text, not value: numbers keep every digit they were written with. An earlier reason, always last, is taken off. */
function jsonObject(text: string): string | null {
  const keys = keysOf(text);
  if (keys === null) return null;
  if (keys.length === 0) return '{}';
  if (!keys.includes(rejectKey)) return text;
  const at = text.lastIndexOf(`,"${rejectKey}":{`);
  const without = at < 0 ? text : `${text.slice(0, at)}}`;
  return keysOf(without)?.includes(rejectKey) === false ? without : text;
}

function keysOf(text: string): string[] | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
    return Object.keys(value);
  } catch {
    return null;
  }
}

/** By the names of the header; empty cells are left out, which means the same. */
function createCsvReader(header: CsvHeader): (raw: Buffer) => string | null {
  const split = createRecordSplitter(header);
  const meant = (text: string): string => (header.defused === true ? undoDefuse(text) : text);
  const names = header.columns.map(meant);
  return (raw) => {
    const cells = split(raw);
    if (cells === null) return null;
    const pairs = cells
      .map(({ text }, at): [string, string] => [names[at] ?? '', meant(text)])
      .filter(([name, text]) => text !== '' && !isRejectColumn(name));
    return JSON.stringify(Object.fromEntries(pairs));
  };
}
