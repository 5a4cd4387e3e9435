import { inputError } from '../../domain/errors.ts';
import { MAX_LOOKUP_PAGE_SIZE } from '../../domain/limits.ts';
import { PageQuery } from './page-query.ts';

export interface ListSegmentsQuery {
  readonly limit: number;
  readonly after: number | null;
  readonly before: number | null;
}

/** @throws InputError `invalid_field`, `invalid_cursor`. */
export function readListSegmentsQuery(parameters: unknown): ListSegmentsQuery {
  const query = new PageQuery(parameters);
  const read = {
    limit: query.limit(MAX_LOOKUP_PAGE_SIZE),
    after: query.read('after_cursor', null, (text) => readSegmentCursor(text, 'after_cursor')),
    before: query.read('before_cursor', null, (text) => readSegmentCursor(text, 'before_cursor')),
  };
  query.check();
  if (read.after === null || read.before === null) return read;
  const message = 'Give either after_cursor or before_cursor; a page lies on one side of a cursor';
  throw inputError('invalid_field', message, 'before_cursor');
}

const form = /^segment:(\d{1,10})$/;
/** Of an integer in Postgres. */
const highestId = 2 ** 31 - 1;

/** Opaque to callers: the segment at which a page began or ended. */
export function writeSegmentCursor(id: number): string {
  return Buffer.from(`segment:${id}`).toString('base64url');
}

function readSegmentCursor(cursor: string, parameter: string): number {
  const digits = form.exec(Buffer.from(cursor, 'base64url').toString('latin1'))?.[1];
  const id = Number(digits);
  if (digits !== undefined && id <= highestId && writeSegmentCursor(id) === cursor) return id;
  throw inputError('invalid_cursor', `${parameter} is taken, unchanged, from metadata.cursor`, parameter);
}
