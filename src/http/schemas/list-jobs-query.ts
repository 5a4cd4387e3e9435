import { type JobType, jobTypes } from '../../background-jobs/find-jobs.ts';
import { inputError } from '../../domain/errors.ts';
import { type LoadStatus, loadStatuses } from '../../domain/load.ts';
import { readJobCursor } from '../cursor.ts';
import { PageQuery } from './page-query.ts';

export interface ListJobsQuery {
  readonly limit: number;
  readonly after: string | null;
  readonly type: JobType | undefined;
  readonly status: LoadStatus | undefined;
  readonly since: Date | undefined;
}

/** Of exports, which are all of one type. @throws InputError `invalid_field`, `invalid_cursor`. */
export function readListExportsQuery(parameters: unknown): Pick<ListJobsQuery, 'limit' | 'after' | 'status'> {
  const query = new PageQuery(parameters);
  const read = readCommon(query);
  query.check();
  return read;
}

function readCommon(query: PageQuery): Pick<ListJobsQuery, 'limit' | 'after' | 'status'> {
  return {
    limit: query.limit(),
    after: query.read('cursor', null, readJobCursor),
    status: query.read('status', undefined, (text) => choose('status', text, loadStatuses)),
  };
}

/** @throws InputError `invalid_field`, `invalid_cursor`, `invalid_date`. */
export function readListJobsQuery(parameters: unknown): ListJobsQuery {
  const query = new PageQuery(parameters);
  const read: ListJobsQuery = {
    ...readCommon(query),
    type: query.read('type', undefined, (text) => choose('type', text, jobTypes)),
    since: query.read('since', undefined, readInstant),
  };
  query.check();
  return read;
}

function choose<T extends string>(name: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === text);
  if (found !== undefined) return found;
  throw inputError('invalid_field', `${name} is one of ${allowed.join(', ')}`, name);
}

const instant = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/i;

/** `YYYY-MM-DD` (from its beginning, in UTC) or an ISO 8601 instant, in UTC unless it says otherwise. */
function readInstant(text: string): Date {
  // A plus sign that was not escaped reaches us as a blank; one before a time of day stands further left.
  const repaired = text.length > 'YYYY-MM-DD hh:mm'.length ? text.replace(/ (\d{2}:?\d{2})$/, '+$1') : text;
  const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(repaired.slice(10)) ? repaired : `${repaired}Z`;
  const date = new Date(repaired.length === 10 ? repaired : zoned.replace(' ', 'T'));
  const day = repaired.slice(0, 10);
  const isDay = !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
  if (instant.test(repaired) && isDay && !Number.isNaN(date.getTime())) return date;
  throw inputError('invalid_date', 'since is YYYY-MM-DD or an ISO 8601 instant', 'since');
}
