import { sql } from 'kysely';
import type { LoadEntity } from '../domain/entity.ts';
import { inputError } from '../domain/errors.ts';
import { MAX_COUNTED_REJECTS } from '../domain/limits.ts';
import type { Load, LoadStatus, LoadType } from '../domain/load.ts';
import type { Reject, RejectCode } from '../domain/reject.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { aheadInLane } from '../postgres/stores/lanes.ts';
import type { LoadContext } from './context.ts';

/** The environment's loads of these ids, in no order; how many are before them is not looked at. */
export async function readLoads(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobIds: readonly string[],
): Promise<Load[]> {
  if (jobIds.length === 0) return [];
  const rows = await context.db
    .selectFrom('loads')
    .select(loadColumns)
    .where('loads.environment_id', '=', environmentId)
    .where('loads.job_id', 'in', jobIds)
    .execute();
  return rows.map((row) => toLoad(row, null));
}

/** Throws `InputError` `not_found`, also for another environment's job. */
export async function requireLoad(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<Load> {
  const row = await context.db
    .selectFrom('loads')
    .select([...loadColumns, aheadInLane('loads').as('ahead')])
    .where('loads.environment_id', '=', environmentId)
    .where('loads.job_id', '=', jobId)
    .executeTakeFirst();
  if (row === undefined) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  return toLoad(row, row.ahead);
}

/** Rejects of a load by code, most frequent first; of a load with more of them than MAX_COUNTED_REJECTS, those that stand first. */
export async function countRejects(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<Record<string, number>> {
  const rows = await context.db
    .selectFrom((eb) =>
      eb
        .selectFrom('load_rejects')
        .where('load_id', '=', ({ selectFrom }) =>
          selectFrom('loads')
            .select('load_id')
            .where('environment_id', '=', environmentId)
            .where('job_id', '=', jobId),
        )
        .orderBy('row_number')
        .limit(MAX_COUNTED_REJECTS)
        .select('error_code')
        .as('first'),
    )
    .groupBy('error_code')
    .select((eb) => ['error_code', eb.fn.countAll<number>().as('count')])
    .orderBy('count', 'desc')
    .execute();
  return Object.fromEntries(rows.map((row) => [row.error_code, row.count]));
}

/** What the last try of a task ran into that is still to be done; of a load that runs, of which there is one a lane. */
const lastError = sql<string | null>`(
  select case when t.kind = 'chunk' then 'chunk ' || t.part || ': ' else '' end || t.last_error
  from tasks t
  where t.subject_id = loads.load_id and t.kind in ('chunk', 'finish') and t.last_error is not null
  order by t.part
  limit 1
)`.as('last_error');

const loadColumns = [
  'loads.job_id',
  'loads.type',
  'loads.entity',
  'loads.status',
  'loads.filename',
  'loads.file_size',
  'loads.total_rows',
  'loads.accepted_at',
  'loads.started_at',
  'loads.ended_at',
  'loads.rows_read',
  'loads.rows_inserted',
  'loads.rows_updated',
  'loads.rows_unchanged',
  'loads.rows_superseded',
  'loads.rows_rejected',
  'loads.dry_run',
  'loads.failure_code',
  'loads.failure_message',
  lastError,
  'loads.attempts',
  'loads.sha256',
  'loads.duplicate_of',
] as const;

interface LoadRow {
  job_id: string;
  type: string;
  entity: string;
  status: string;
  filename: string;
  file_size: number;
  total_rows: number;
  accepted_at: Date;
  started_at: Date | null;
  ended_at: Date | null;
  rows_read: number;
  rows_inserted: number;
  rows_updated: number;
  rows_unchanged: number;
  rows_superseded: number;
  rows_rejected: number;
  dry_run: boolean;
  failure_code: string | null;
  failure_message: string | null;
  last_error: string | null;
  attempts: number;
  sha256: Buffer;
  duplicate_of: string | null;
}

function toLoad(row: LoadRow, ahead: number | null): Load {
  const status = row.status as LoadStatus;
  return {
    jobId: row.job_id,
    type: row.type as LoadType,
    entity: row.entity as LoadEntity,
    status,
    filename: row.filename,
    fileSize: row.file_size,
    totalRows: row.total_rows,
    acceptedAt: row.accepted_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    tally: {
      read: row.rows_read,
      inserted: row.rows_inserted,
      updated: row.rows_updated,
      unchanged: row.rows_unchanged,
      superseded: row.rows_superseded,
      rejected: row.rows_rejected,
    },
    dryRun: row.dry_run,
    failure:
      row.failure_code === null
        ? null
        : { code: row.failure_code, message: row.failure_message ?? row.failure_code },
    lastError: row.last_error,
    attempts: row.attempts,
    queuePosition: status === 'queued' ? ahead : status === 'processing' ? 0 : null,
    sha256: row.sha256.toString('hex'),
    duplicateOf: row.duplicate_of,
  };
}

/** What is known of a load whose records were all refused. */
export interface Refusals {
  /** Null for NDJSON. */
  readonly header: CsvHeader | null;
  /** How many by code, the most frequent first. */
  readonly byCode: Readonly<Record<string, number>>;
  /** The first of the most frequent code. */
  readonly sample: Reject;
}

const mostNames = 12;
const longestName = 40;
/** What people call the column that names a user or a company. */
const idLike =
  /^(?:_?id|uuid|uid|e-?mail|(?:user|customer|client|account|member|company|org\w*)[\s_-]?(?:id|key)?)$/i;
const ours: ReadonlySet<string> = new Set(['user_id', 'company_id']);
/** A line of an object or array that goes on below. */
const spread = /^\s*(?:[[{\]}]+,?|"[^"]*"\s*:.*[^}\]])\s*$/s;

/** The failure of a load of which every record was refused: how many, and what the reason probably is. No values of the data. */
export function explainRefusals({ header, byCode, sample }: Refusals): string {
  const count = Object.values(byCode).reduce((sum, each) => sum + each, 0);
  const all = count === 1 ? 'the only record was refused' : `all ${count} records were refused`;
  const shares = Object.entries(byCode).map(([code, each]) => (each === count ? code : `${each} ${code}`));
  const likely = header === null ? ofNdjson(sample) : ofCsv(header, sample);
  return `${all} (${shares.join(', ')}): ${likely ?? `the first, in line ${sample.line}: ${sample.message}`}`;
}

function ofNdjson(sample: Reject): string | null {
  const text = textOf(sample);
  const start = text.trimStart();
  switch (sample.code) {
    case 'invalid_json':
      if (spread.test(text)) {
        return 'this looks like JSON that is spread over lines; NDJSON has one whole record in each (jq -c . does that), or send an array as .json';
      }
      if (/^[{[]\s*'/.test(start)) return 'names and text stand in single quotes; JSON wants double ones';
      return start.startsWith('{')
        ? null
        : 'the lines are no JSON; if this is CSV, send it with format=csv or as .csv';
    case 'not_an_object':
      return 'each line is to be an object such as {"user_id":"a","metadata":{}}';
    case 'missing_id':
      return lacksId(namesOf(text));
    default:
      return ofAnyFormat(sample.code);
  }
}

function ofCsv(header: CsvHeader, sample: Reject): string | null {
  if (textOf(sample).trimStart().startsWith('{')) {
    return 'the lines look like NDJSON; send it with format=ndjson or as .ndjson';
  }
  switch (sample.code) {
    case 'missing_id':
      return `the cell of the id is empty in every record; the columns are ${list(header.columns)}. If another one is the id, name it with map (${example(header.columns)})`;
    case 'wrong_field_count':
      return `the header has ${header.columns.length} columns (delimiter ${JSON.stringify(header.delimiter)}) and no record has as many cells; is the first line the header, and the delimiter the right one?`;
    case 'invalid_quote':
    case 'unclosed_quote':
      return 'quotes do not stand as in CSV, where a cell with quotes is quoted as a whole and doubles them';
    default:
      return ofAnyFormat(sample.code);
  }
}

function ofAnyFormat(code: RejectCode): string | null {
  if (code === 'invalid_utf8') {
    return 'the file is not in UTF-8; convert it first, for example: iconv -f WINDOWS-1252 -t UTF-8 FILE';
  }
  return code === 'nul_character' ? 'the file holds zero bytes: is it text, in UTF-8?' : null;
}

function lacksId(names: readonly string[]): string {
  const seen = names.length === 0 ? '' : `; the first one has ${list(names)}`;
  return `no record has a user_id or company_id${seen}. If another field is the id, name it with map (${example(names)})`;
}

function example(names: readonly string[]): string {
  const found = names.find((name) => !ours.has(name) && idLike.test(name)) ?? 'Their Name';
  return `map=${shorten(found)}=${/compan|org|account/i.test(found) ? 'company_id' : 'user_id'}`;
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, mostNames).map(shorten);
  return shown.join(', ') + (names.length > mostNames ? ' …' : '');
}

function shorten(name: string): string {
  const cut = name.length > longestName ? `${name.slice(0, longestName)}…` : name;
  return cut.replace(/\p{Cc}/gu, ' ').toWellFormed();
}

/** None if the record is no object, or was kept only in part. */
function namesOf(text: string): string[] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? Object.keys(value) : [];
  } catch {
    return [];
  }
}

function textOf({ raw }: Reject): string {
  return Buffer.from(raw).toString('utf8');
}
