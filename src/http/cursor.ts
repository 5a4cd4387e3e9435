import { inputError } from '../domain/errors.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Opaque to callers: the job id at which a page ended. */
export function writeJobCursor(jobId: string): string {
  return Buffer.from(jobId).toString('base64url');
}

/** @throws InputError `invalid_cursor`. */
export function readJobCursor(cursor: string): string {
  const jobId = decode(cursor);
  if (uuid.test(jobId)) return jobId;
  throw invalidCursor();
}

/** Opaque to callers: the row at which a page of rejects ended. */
export function writeRowCursor(row: number): string {
  return Buffer.from(String(row)).toString('base64url');
}

/** @throws InputError `invalid_cursor`. */
export function readRowCursor(cursor: string): number {
  const row = decode(cursor);
  if (/^\d{1,15}$/.test(row)) return Number(row);
  throw invalidCursor();
}

function decode(cursor: string): string {
  return Buffer.from(cursor, 'base64url').toString('latin1');
}

function invalidCursor(): Error {
  return inputError('invalid_cursor', 'A cursor is taken, unchanged, from the page before', 'cursor');
}
