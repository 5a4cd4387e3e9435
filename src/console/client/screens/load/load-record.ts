/* A load as the API shows it: what these screens read of it. */
import { ApiError, api } from '../../lib/api.ts';
import { type Loaded, useData } from '../../lib/use-data.ts';

export interface Counts {
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
  readonly counts: Counts;
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
  readonly counts: Counts;
  readonly values: ValueChanges;
}

export interface PlanDetail extends PlanSummary {
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

const pollMs = 700;

export function isEnded({ status }: { readonly status: string }): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** Returns a value that changes whenever the load's refused records, or their reasons, may have changed. */
export function refusedState({ counts, amendments }: LoadDetail): string {
  const ended = amendments.filter(isEnded).map(({ job_id }) => job_id);
  return `${counts.rejected} ${ended.join()}`;
}

/** Cancels a load; one that has ended meanwhile is left alone. */
export async function cancelLoad(jobId: string): Promise<void> {
  try {
    await api(`/v1/background_jobs/${jobId}/cancel`, { method: 'POST' });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
  }
}

/** The load, asked for again and again until nothing of it changes by itself any more. */
export function useLoad(jobId: string): Loaded<LoadDetail> {
  const path = `/v1/background_jobs/${encodeURIComponent(jobId)}`;
  const load = useData(jobId === '' ? null : path, (signal) => api<LoadDetail>(path, { signal }), {
    everyMs: pollMs,
  });
  return load;
}
