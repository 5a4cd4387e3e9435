import { formatCount, shorten } from '../../lib/format.ts';
import { isLoad } from '../../lib/jobs.ts';
import type { LiveEvent } from '../../lib/live.ts';
import type { LiveJob, LiveRecord } from '../../lib/records.ts';

export interface RecordsEvent extends LiveEvent {
  /** Host and process id of the server whose records they are. */
  readonly server: string;
  readonly arrived: number;
  readonly refused: number;
  readonly shown: number;
  readonly records: readonly LiveRecord[];
}

/** A line of the table: a record, or the end of a load. */
export interface Line {
  readonly key: string;
  readonly at: string;
  readonly route: string;
  readonly what: string;
  readonly userId: string | null;
  readonly companyId: string | null;
  readonly ms: number | null;
  readonly accepted: boolean;
  readonly reason: string;
  readonly keyId: string | null;
  readonly requestId: string | null;
  readonly jobId: string | null;
  readonly body: string;
}

let serial = 0;

export function lineOf(record: LiveRecord): Line {
  const fields = parse(record.body);
  const text = (name: string): string | null => {
    const value = fields[name];
    return typeof value === 'string' || typeof value === 'number' ? String(value) : null;
  };
  const [userId, companyId, event] = [text('user_id'), text('company_id'), text('event_name')];
  const who = userId ?? companyId ?? shorten(record.body, 80);
  return {
    key: `r${++serial}`,
    at: record.at,
    route: record.route,
    what: event === null ? who : `${event} · ${who}`,
    userId,
    companyId,
    ms: record.ms,
    accepted: record.accepted,
    reason: record.error_code === null ? '' : `${record.error_code}: ${record.message}`,
    keyId: record.key_id,
    requestId: record.request_id,
    jobId: null,
    body: record.body,
  };
}

/** A body that was cut, or is not JSON, has no fields to show; it is shown as it is. */
function parse(body: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export interface JobsEvent extends LiveEvent {
  readonly jobs: readonly LiveJob[];
}

/** Returns the line of a load that has ended; the records of files are not shown one by one. */
export function lineOfJob(job: LiveJob): Line | null {
  if (!isLoad(job) || job.end_time === null) return null;
  const { read = 0, rejected = 0 } = job.counts ?? {};
  const counts = `${formatCount(read)} records, ${formatCount(rejected)} refused`;
  return {
    key: job.job_id,
    at: job.end_time,
    route: 'import',
    what: `${job.filename} · ${counts}`,
    userId: null,
    companyId: null,
    ms: Date.parse(job.end_time) - Date.parse(job.start_time),
    accepted: job.status === 'completed',
    reason: job.failure === null ? '' : `${job.failure.error_code}: ${job.failure.message}`,
    keyId: null,
    requestId: null,
    jobId: job.job_id,
    body: '',
  };
}
