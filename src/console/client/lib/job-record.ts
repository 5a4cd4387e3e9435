/* Jobs as the API shows them. */

export interface JobItem {
  readonly job_id: string;
  readonly type: string;
  readonly status: string;
  readonly filename: string;
  readonly file_size: number;
  readonly total_rows: number;
  readonly start_time: string;
  readonly end_time: string | null;
  /** The time at which the current work, or the last, began; `null` while the job waits. */
  readonly processing_since: string | null;
  readonly elapsed_time: number;
}

export type Counts = Readonly<Record<string, number>>;

interface Failure {
  readonly error_code: string;
  readonly message: string;
}

/** What all kinds have; the other fields are those of one kind. */
export interface JobDetail extends JobItem {
  readonly completed_rows: number;
  readonly progress: number;
  readonly failure: Failure | null;
  readonly last_error: string | null;
  readonly attempts: number;
  readonly rows_per_second?: number | null;
  readonly queue_position?: number | null;
  /** Of loads and deletions. */
  readonly counts?: Counts;
  readonly counts_by_kind?: Readonly<Record<string, Counts>> | null;
  readonly rejects?: { readonly count: number; readonly by_code: Counts };
  readonly sha256?: string;
  readonly duplicate_of?: string | null;
  readonly amends?: string | null;
  readonly amendments?: readonly {
    readonly job_id: string;
    readonly status: string;
    readonly total_rows: number;
  }[];
  readonly dry_run?: boolean;
  readonly read_as?: ReadAs | null;
  /** Of a load that was planned; null until it is. */
  readonly plan?: Plan | null;
  /** Of deletions. */
  readonly removed?: Counts;
  readonly purge_exports?: boolean;
  /** Of exports. */
  readonly warnings?: readonly { readonly message: string; readonly details: string }[];
}

export interface ReadAs {
  readonly format: string;
  readonly encoding: string | null;
  readonly csv: {
    readonly delimiter: string;
    readonly header_line: number | null;
    readonly columns: readonly string[];
  } | null;
  readonly sheet: string | null;
  readonly member: string | null;
  readonly notes: readonly string[];
}

export interface Plan {
  readonly planned_at: string;
  readonly applied_at: string | null;
  readonly counts: Counts;
}

/** `GET /v1/background_jobs/{id}/history` */
export interface JobHistory {
  readonly request_id: string | null;
  readonly origin: { readonly kind: string; readonly name: string | null } | null;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** There is more of them. */
  readonly parameters_cut: boolean;
  readonly phases: readonly { readonly phase: string; readonly at: string }[];
}

export interface Chunk {
  readonly chunk: number;
  readonly state: 'waiting' | 'running' | 'done';
  readonly attempt: number;
  readonly losses: number;
  readonly worker: string | null;
  readonly start_time: string | null;
  readonly end_time: string | null;
  readonly ms: number | null;
  readonly rows: number;
  readonly bytes: number;
  readonly rejected: number | null;
  readonly last_error: string | null;
}

/** As the stream has a job. */
export interface LiveJob extends Omit<JobItem, 'elapsed_time'> {
  readonly completed_rows: number;
  readonly counts: Counts | null;
  /** The part of completed_rows from before processing_since. */
  readonly rows_before: number;
  readonly failure: Failure | null;
  readonly last_error: string | null;
  readonly attempts: number;
  readonly dry_run: boolean;
}

/** Returns how long the current work has taken, without waiting for a turn or for approval of a plan; `null` while the job waits. */
export function workMs({
  processing_since,
  end_time,
}: Pick<JobItem, 'processing_since' | 'end_time'>): number | null {
  if (processing_since === null) return null;
  const end = end_time === null ? Date.now() : Date.parse(end_time);
  return Math.max(0, end - Date.parse(processing_since));
}

export const jobTypeNames: Readonly<Record<string, string>> = {
  import: 'File',
  bulk_identify_users: 'Users, in bulk',
  bulk_identify_companies: 'Companies, in bulk',
  export: 'Export',
  delete_users: 'Deletion of users',
  delete_companies: 'Deletion of companies',
};

export const jobStatuses = ['queued', 'processing', 'completed', 'failed', 'cancelled'] as const;

export function isUnfinished({ status }: { readonly status: string }): boolean {
  return status === 'queued' || status === 'processing';
}

export function isLoad({ type }: { readonly type: string }): boolean {
  return type === 'import' || type.startsWith('bulk_identify_');
}
