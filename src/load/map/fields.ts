import type { Instant } from '../../base/instant.ts';
import { idProblem } from '../../base/validation.ts';
import { type Entity, type RecordKind, recordKinds } from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import { fromByteString, idText, plainNumber, wholeNumber } from '../../formats/json-text.ts';
import { kind as cellKind, type RecordCells, role } from './cells.ts';
import type { EventTimes } from './event-checks.ts';

/* Reads the fields of a record, from their bytes where possible, otherwise from strings. */

const SPACE = 0x20;
const ZERO = 0x30;
const NINE = 0x39;
const BACKSLASH = 0x5c;
const DELETE = 0x7f;
/** Whole numbers of at most this many digits are exact. */
const MAX_ID_DIGITS = 15;
const kindTexts = recordKinds.map((kind) => Buffer.from(kind));

/** A byte string. */
export function textOf({ own, fields }: RecordCells, field: number): string {
  const cell = fields[field] ?? -1;
  const text = own.text(cell);
  return own.kinds[cell] === cellKind.number ? plainNumber(text) : text;
}

/** True if the field is blank. Usually, its first byte is enough to decide. */
export function isBlank(cells: RecordCells, field: number): boolean {
  const { own } = cells;
  const byte = own.bytes[own.starts[cells.fields[field] ?? -1] ?? 0] ?? 0;
  if (byte > SPACE && byte < DELETE && byte !== BACKSLASH) return false;
  return fromByteString(textOf(cells, field)).trim() === '';
}

export function canBeId(cells: RecordCells, field: number): boolean {
  const { kinds, bytes, starts, ends } = cells.own;
  const cell = cells.fields[field] ?? -1;
  const kind = kinds[cell] ?? 0;
  if (kind !== cellKind.number) return kind < cellKind.number;
  return isWhole(bytes, starts[cell] ?? 0, ends[cell] ?? 0) || wholeNumber.test(textOf(cells, field));
}

/** True if a number consists only of digits and is exact. */
export function isWhole(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < ZERO || byte > NINE) return false;
  }
  return end - start <= MAX_ID_DIGITS;
}

export function readTime(cells: RecordCells, times: EventTimes): Instant | Reason | null {
  if (!cells.has(role.time)) return null;
  const timeKind = cells.own.kinds[cells.fields[role.time] ?? -1] ?? 0;
  return times.read(timeKind <= cellKind.number ? textOf(cells, role.time) : '', 'inserted_at');
}

/** Returns the entity whose id the record contains, or `null` if it contains no id. */
export function entityOf({ fields }: RecordCells): Entity | null {
  if (fields[role.userId] !== -1) return 'users';
  return fields[role.companyId] === -1 ? null : 'companies';
}

/** Returns the kind that the record states, or `null` if it states no valid kind. */
export function kindOf({ own, fields }: RecordCells): RecordKind | null {
  const cell = fields[role.kind] ?? -1;
  if (cell === -1 || (own.kinds[cell] ?? 0) > cellKind.escaped) return null;
  const start = own.starts[cell] ?? 0;
  const end = own.ends[cell] ?? 0;
  for (let kind = 0; kind < kindTexts.length; kind++)
    if (isText(own.bytes, start, end, kindTexts[kind] as Buffer)) return recordKinds[kind] ?? null;
  return null;
}

function isText(bytes: Buffer, start: number, end: number, text: Buffer): boolean {
  if (text.length !== end - start) return false;
  let at = 0;
  while (at < text.length && text[at] === bytes[start + at]) at++;
  return at === text.length;
}

/** Returns the value as an id, or `null` if it cannot be an id. */
export function idOf(value: unknown): string | null {
  const id = idText(value);
  return id !== null && idProblem(id) === null ? id : null;
}
