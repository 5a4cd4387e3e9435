/* Records of the API as the console reads them. */
import type { NeedKind } from '../../../domain/need.ts';
import type { DeliveryState } from '../../../domain/notification.ts';
import type { SourceFormat } from '../../../domain/source.ts';
import type { Scope } from './api.ts';
export type Counts = Readonly<Record<string, number>>;
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

export interface Failure {
  readonly error_code: string;
  readonly message: string;
}

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
  readonly plan?: PlanBrief | null;
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

export interface PlanBrief {
  readonly planned_at: string;
  readonly applied_at: string | null;
  readonly counts: Counts;
}

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

export interface Upload {
  readonly upload_id: string;
  readonly filename: string | null;
  readonly file_size: number;
  readonly received_bytes: number;
  readonly sha256: string | null;
  readonly created_at: string;
  readonly expires_at: string;
}

export interface BulkResult {
  readonly count: number;
  readonly done: number;
  readonly refused: readonly { readonly job_id: string; readonly message: string }[];
}

export interface Minute {
  readonly minute: string;
  readonly records: number;
  readonly refused: number;
  readonly rows: number;
}

export interface LaneItem {
  readonly position: number;
  readonly job_id: string;
  readonly type: string;
  readonly status: string;
  readonly filename: string | null;
  readonly done: number;
  readonly total: number;
  readonly start_time: string;
}

export interface OverviewHealth {
  readonly status: 'ready' | 'degraded' | 'not_ready';
  readonly parts: Readonly<Record<string, 'ok' | 'away'>>;
}

export interface OverviewFindings {
  readonly warnings: number;
  readonly failed: number;
  readonly items: readonly {
    readonly check: string;
    readonly status: 'ok' | 'warning' | 'failed';
    readonly found: string;
    readonly advice: string | null;
  }[];
  readonly is_known: boolean;
}

export interface FailingTask {
  readonly task: string;
  readonly job_id: string | null;
  readonly part: number;
  readonly failures: number;
  readonly losses: number;
  readonly last_error: string | null;
  readonly next_try_at: string | null;
}

export interface Work {
  readonly waiting: number;
  readonly running: number;
  readonly postponed: number;
  readonly failing: readonly FailingTask[];
}

export interface Queue {
  readonly lives_in: 'postgres' | 'redis';
  readonly is_known: boolean;
  readonly queues: readonly {
    readonly name: string;
    readonly waiting: number;
    readonly active: number;
    readonly delayed: number;
    readonly failed: number;
  }[];
}

export interface Need {
  readonly kind: NeedKind;
  readonly status: 'failed' | 'warning';
  readonly count: number;
  /** The job or the schedule, if it is one. */
  readonly subject: string | null;
  readonly says: string;
}

export interface Overview {
  readonly needs: readonly Need[];
  readonly server: string;
  readonly health: OverviewHealth;
  readonly findings: OverviewFindings;
  readonly minutes: readonly Minute[];
  readonly queued: number;
  readonly processing: number;
  readonly failed_24h: number;
  readonly unaccounted: number;
  readonly work: Work;
  readonly queue: Queue | null;
  readonly lane: readonly LaneItem[];
}

export interface RunningJob {
  readonly job_id: string;
  readonly completed_rows: number;
  readonly total_rows: number;
}

export interface InspectedColumn {
  readonly name: string;
  /** `user_id`, `metadata.plan`, …; null: it is passed over. */
  readonly becomes: string | null;
  readonly reason: string;
  readonly type: string | null;
  readonly filled: number;
  readonly distinct: number;
  readonly samples: readonly unknown[];
  readonly frequent: readonly { readonly value: unknown; readonly count: number }[];
}

export interface CsvReadAs {
  readonly delimiter: string;
  readonly quote: string;
  readonly header_line: number | null;
  readonly columns: readonly string[];
}

export interface RefusedSample {
  readonly row: number;
  readonly line: number;
  readonly column: string | null;
  readonly error_code: string;
  readonly message: string;
  readonly raw: string;
}

export interface Inspection {
  readonly upload_id: string;
  readonly filename: string | null;
  readonly file_size: number;
  readonly sha256: string;
  readonly read_as: {
    readonly format: SourceFormat;
    /** Null for what is no text. */
    readonly encoding: string | null;
    readonly csv: CsvReadAs | null;
    readonly sheet: string | null;
    readonly member: string | null;
    readonly notes: readonly string[];
  } | null;
  readonly entity: 'users' | 'companies' | 'auto' | null;
  readonly records: number;
  readonly whole_file: boolean;
  readonly head: string;
  readonly columns: readonly InspectedColumn[];
  readonly column_names: readonly string[] | null;
  readonly map: Readonly<Record<string, string>>;
  /** The one that was given, or is proposed for events of another product. */
  readonly preset: string | null;
  readonly mapping: string | null;
  readonly saved_mappings: readonly string[];
  readonly problem: {
    readonly error_code: string;
    readonly message: string;
    readonly details: string;
  } | null;
  readonly rejects: {
    readonly count: number;
    readonly by_code: Readonly<Record<string, number>>;
    readonly items: readonly RefusedSample[];
  };
  readonly rows: readonly StoredRow[];
}

export interface StoredRow extends Readonly<Record<string, unknown>> {
  readonly row: number;
  readonly event_type: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface Tally {
  readonly read: number;
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly superseded: number;
  readonly rejected: number;
  readonly amended: number;
}

export interface LoadDetail {
  readonly job_id: string;
  readonly status: 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled';
  readonly filename: string;
  readonly total_rows: number;
  readonly completed_rows: number;
  readonly progress: number;
  readonly counts: Tally;
  readonly failure: { readonly error_code: string; readonly message: string } | null;
  readonly last_error: string | null;
  readonly rows_per_second: number | null;
  readonly queue_position: number | null;
  readonly duplicate_of: string | null;
  readonly dry_run: boolean;
  readonly amendments: readonly Amendment[];
  readonly plan?: PlanSummary | null;
  readonly read_as: { readonly format: string } | null;
}

export interface Amendment {
  readonly job_id: string;
  readonly status: LoadDetail['status'];
  readonly total_rows: number;
}

export interface ValueChanges {
  readonly appear: number;
  readonly change: number;
  readonly go: number;
  readonly change_type: number;
}

export interface PlanSummary {
  readonly planned_at: string;
  readonly applied_at: string | null;
  readonly counts: Tally;
  readonly values: ValueChanges;
}

export interface Plan extends PlanSummary {
  readonly profiles: {
    readonly users: { readonly new: number; readonly changed: number };
    readonly companies: { readonly new: number; readonly changed: number };
  };
  readonly properties: readonly PlannedProperty[];
  readonly more_properties: number;
  readonly sample: readonly PlannedRow[];
}

export interface PlannedProperty extends ValueChanges {
  readonly entity: string;
  readonly name: string;
  readonly is_new: boolean;
}

export interface PlannedRow {
  readonly entity: string;
  readonly id: string;
  readonly before: Readonly<Record<string, unknown>>;
  readonly after: Readonly<Record<string, unknown>>;
  readonly company_before: string | null;
  readonly company_after: string | null;
  readonly more_properties: number;
}

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

export interface MendProposal {
  readonly id: string;
  readonly sentence: string;
  readonly tried: number;
  readonly accepted: number;
  readonly ambiguous: boolean;
  readonly samples: readonly { readonly row: number; readonly before: string; readonly after: string }[];
}

export interface RejectCause {
  readonly id: string;
  readonly error_code: string;
  readonly column: string | null;
  readonly shape: string | null;
  readonly count: number;
  readonly samples: readonly { readonly row: number; readonly value: string | null; readonly raw: string }[];
  readonly proposals: readonly MendProposal[];
}

export interface ReplacementPreview {
  readonly id: string;
  readonly records: number;
  readonly is_complete: boolean;
  readonly samples: readonly { readonly row: number; readonly before: string; readonly after: string }[];
}

export interface LiveRecord {
  readonly at: string;
  readonly route: string;
  readonly request_id: string;
  readonly key_id: string;
  readonly ms: number;
  readonly accepted: boolean;
  readonly error_code: string | null;
  readonly message: string | null;
  readonly body: string;
}

export interface Delivery {
  readonly delivery_id: string;
  readonly event_type: string;
  readonly job_id: string | null;
  readonly channel: string;
  readonly target: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly next_at: string | null;
  readonly created_at: string;
  readonly last_attempt_at: string | null;
  readonly last_took_ms: number | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly delivered_at: string | null;
}

export interface Try {
  readonly attempt: number;
  readonly begun_at: string;
  readonly took_ms: number;
  readonly status: number | null;
  readonly error: string | null;
}

export interface DeliveryDetail extends Delivery {
  readonly tries: readonly Try[];
  readonly body: string;
}

export interface Subscription {
  readonly id: string;
  readonly channel: string;
  readonly target: string;
  readonly on: readonly string[];
  readonly types: readonly string[];
  readonly disabled_reason: string | null;
}

export interface TestDelivery {
  readonly delivered: boolean;
  readonly status: number | null;
  readonly error: string | null;
  readonly took_ms: number;
}

export interface ApiKey {
  readonly key_id: string;
  readonly label: string;
  readonly scopes: readonly Scope[];
  readonly status: 'live' | 'expired' | 'revoked';
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
}

export interface Setting {
  readonly name: string;
  readonly value: string;
  readonly source: string;
  readonly meaning: string;
}

export interface ExportItem {
  readonly job_id: string;
  readonly status: string;
  readonly progress: number;
  readonly start_time: string;
  readonly end_time: string | null;
  readonly rows: number;
  readonly bytes: number;
}

export interface ExportFile {
  readonly filename: string;
  readonly url: string;
  readonly rows?: number;
  readonly bytes: number;
  readonly sha256: string;
}

export interface ExportJobDetail extends ExportItem {
  readonly snapshot_time: string | null;
  readonly presigned_urls: readonly ExportFile[];
  readonly manifest: ExportFile | null;
  readonly files_expired: boolean;
  readonly failure: { readonly error_code: string; readonly message: string } | null;
}

export interface ExportPreview {
  readonly rows: number;
  readonly is_exact: boolean;
  readonly bytes: number;
  readonly files: readonly {
    readonly dataset: string;
    readonly rows: number;
    readonly is_exact: boolean;
    readonly bytes: number;
    readonly header: string | null;
    readonly first_rows: readonly string[];
  }[];
  readonly warnings: readonly { readonly message: string; readonly details: string }[];
}

export interface WaitingFile {
  readonly name: string;
  readonly size: number;
  readonly modified_at: string;
}

export interface TakenFile {
  readonly file_id: string;
  readonly name: string;
  readonly size: number;
  readonly state: string;
  readonly claimed_at: string;
  readonly job_id: string | null;
}

export interface ConcludedFile {
  readonly file_id: string;
  readonly name: string;
  readonly size: number;
  readonly outcome: 'done' | 'failed';
  readonly path: string;
  readonly job_id: string | null;
  readonly is_duplicate: boolean;
  readonly rejected: number;
  readonly reasons: readonly {
    readonly error_code: string;
    readonly message: string;
    readonly details: string;
  }[];
  readonly concluded_at: string;
}

export interface Inbox {
  readonly is_watched: boolean;
  readonly waiting: number;
  readonly files: readonly WaitingFile[];
  readonly taken: readonly TakenFile[];
  readonly ignored: readonly { readonly name: string; readonly why: string }[];
  readonly held: readonly string[];
  readonly recent: readonly ConcludedFile[];
}

export interface Profile {
  readonly user_id?: string;
  readonly company_id: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly updated_at: string;
}

export interface Activity {
  readonly events: number;
  readonly is_complete: boolean;
  readonly first_event_at: string | null;
  readonly last_event_at: string | null;
  readonly days: readonly { readonly day: string; readonly events: number }[];
  readonly event_names: readonly {
    readonly event_name: string;
    readonly events: number;
    readonly last_at: string;
  }[];
  readonly users: number | null;
  readonly archived_until: string | null;
}

export interface StoredEvent {
  readonly event_id: string;
  readonly event_name: string;
  readonly inserted_at: string;
  readonly source: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface DeletionPreview {
  readonly requested: number;
  readonly profiles: number;
  readonly not_found: number;
  readonly events: number;
  readonly users: number;
  readonly is_complete: boolean;
  readonly archived_until: string | null;
}

export interface SegmentItem {
  readonly id: number;
  readonly title: string;
  readonly usage: string;
  readonly category: string;
  readonly is_hidden: boolean;
  readonly is_protected: boolean;
  readonly status: string;
}

export interface SegmentPage {
  readonly data: readonly SegmentItem[];
  readonly metadata: { readonly cursor: { readonly after: string }; readonly total_count: number };
}

export interface UserSegments {
  readonly segment_ids: readonly number[];
  readonly asked: number;
  readonly total: number;
}

export interface ShortRun {
  readonly due_at: string;
  readonly status: string;
  readonly cause: string;
  readonly missed: number;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly error_code: string | null;
  readonly message: string | null;
  readonly last_error: string | null;
}

export interface Schedule {
  readonly schedule: string;
  readonly kind: 'load' | 'export';
  readonly what: string;
  readonly cron: string;
  readonly time_zone: string;
  readonly enabled: boolean;
  readonly paused_at: string | null;
  readonly next_due: string | null;
  readonly due_times: readonly string[];
  readonly due_times_are_all: boolean;
  readonly runs: readonly ShortRun[];
}

export interface ScheduleRun extends ShortRun {
  readonly attempts: number;
  readonly items: readonly {
    readonly item: string;
    readonly job_id: string | null;
    readonly is_new: boolean;
    readonly message: string | null;
  }[];
  readonly item_count: number;
}

export interface ScheduleList {
  readonly is_configured: boolean;
  readonly problems: readonly string[];
  readonly data: readonly Schedule[];
}

export interface DefinitionLine {
  readonly depth: number;
  readonly text: string;
}

export interface SegmentDetail extends SegmentItem {
  readonly key: string;
  readonly definition: object;
  readonly words: readonly DefinitionLine[];
}

export interface SegmentPreview {
  readonly count: number;
  readonly user_ids: readonly string[];
}

export interface DefinitionPreview extends SegmentPreview {
  readonly words: readonly DefinitionLine[];
}

export interface Property {
  readonly key: string;
  readonly data_type: string;
}
export interface Environment {
  readonly name: string;
  readonly app_token: string;
}
