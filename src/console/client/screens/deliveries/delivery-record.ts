/* Deliveries as the API shows them. */
import { visibleText } from '../../lib/format.ts';
import type { Tone } from '../../ui/badge.tsx';

export interface Delivery {
  readonly delivery_id: string;
  readonly event_type: string;
  readonly job_id: string | null;
  readonly channel: string;
  readonly target: string;
  readonly state: string;
  readonly attempts: number;
  readonly next_at: string | null;
  readonly created_at: string;
  readonly last_attempt_at: string | null;
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

export const path = '/v1/deliveries';
export const tones: Readonly<Record<string, Tone>> = { pending: 'waiting', delivered: 'good', dead: 'bad' };

export function answerOf({
  status,
  error,
}: {
  readonly status: number | null;
  readonly error: string | null;
}): string {
  if (error !== null) return visibleText(error);
  return status === null ? '–' : `HTTP ${status}`;
}
