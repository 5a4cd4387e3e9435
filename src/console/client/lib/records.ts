/* Names for parts of the API's records that the console passes around, and for records that several endpoints answer with. */

import type { DeletionJobDetail } from '../../../api/deletion.ts';
import type { DeliveryDetail } from '../../../api/delivery.ts';
import type { ExportJob } from '../../../api/export.ts';
import type { Inbox } from '../../../api/inbox.ts';
import type { Inspection } from '../../../api/inspection.ts';
import type { JobListItem } from '../../../api/job.ts';
import type { JobDetail as LoadDetail } from '../../../api/load.ts';
import type { Overview } from '../../../api/overview.ts';
import type { Plan } from '../../../api/plan.ts';
import type { UserProfile } from '../../../api/profile.ts';
import type { Schedule } from '../../../api/schedule.ts';
import type { SegmentDetail } from '../../../api/segment.ts';

export type Counts = Readonly<Record<string, number>>;

/** The detail of a job of any kind: what all kinds have, and what only loads, deletions or exports have. */
export type JobDetail = JobListItem &
  Pick<LoadDetail, 'completed_rows' | 'progress' | 'failure' | 'last_error' | 'attempts'> &
  Partial<Omit<LoadDetail, keyof JobListItem | 'counts' | 'counts_by_kind'>> &
  Partial<Pick<DeletionJobDetail, 'removed' | 'purge_exports'>> &
  Partial<Pick<ExportJob, 'warnings'>> & {
    readonly counts?: Counts;
    readonly counts_by_kind?: Readonly<Record<string, Counts>> | null;
  };

export type Failure = NonNullable<LoadDetail['failure']>;
export type ReadAs = NonNullable<LoadDetail['read_as']>;
export type PlanSummary = NonNullable<LoadDetail['plan']>;
export type Amendment = LoadDetail['amendments'][number];
export type ValueChanges = Plan['values'];
export type PlannedProperty = Plan['properties'][number];
export type PlannedRow = Plan['sample'][number];

export type InspectedColumn = Inspection['columns'][number];
export type RefusedSample = Inspection['rejects']['items'][number];
export type StoredRow = Inspection['rows'][number] & Readonly<Record<string, unknown>>;
export type CsvReadAs = NonNullable<NonNullable<Inspection['read_as']>['csv']>;

export type Need = Overview['needs'][number];
export type Minute = Overview['minutes'][number];
export type LaneItem = Overview['lane'][number];
export type OverviewHealth = Overview['health'];
export type OverviewFindings = Overview['findings'];
export type Work = Overview['work'];
export type FailingTask = Work['failing'][number];
export type Queue = NonNullable<Overview['queue']>;

export type Try = DeliveryDetail['tries'][number];
export type ExportFile = NonNullable<ExportJob['manifest']> & { readonly rows?: number };
export type WaitingFile = Inbox['files'][number];
export type TakenFile = Inbox['taken'][number];
export type ConcludedFile = Inbox['recent'][number];
export type ShortRun = Schedule['runs'][number];
export type DefinitionLine = SegmentDetail['words'][number];

/* Of the live views (`GET /v1/stream`), which the API document does not describe. */

export interface LiveJob extends Omit<JobListItem, 'elapsed_time'> {
  readonly completed_rows: number;
  readonly counts: Counts | null;
  /** The part of `completed_rows` from before `processing_since`. */
  readonly rows_before: number;
  readonly failure: Failure | null;
  readonly last_error: string | null;
  readonly attempts: number;
  readonly dry_run: boolean;
}

export interface RunningJob {
  readonly job_id: string;
  readonly completed_rows: number;
  readonly total_rows: number;
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

/** A user, or a company, which has no `user_id`. */
export type Profile = Omit<UserProfile, 'user_id'> & Partial<Pick<UserProfile, 'user_id'>>;
