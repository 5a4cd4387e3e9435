import type { Outcome } from '../../domain/job.ts';
import type { JobEvent } from '../../tasks/job-seam.ts';

/** `schedule` is a run of a schedule, which has any number of jobs. */
export const jobKinds = ['load', 'export', 'schedule'] as const;
export type JobKind = (typeof jobKinds)[number];

export type EventType = JobEvent['type'] | 'ping';

export const channels = ['webhook', 'email'] as const;
export type Channel = (typeof channels)[number];

export const formatNames = ['standard', 'slack', 'teams'] as const;
export type Format = (typeof formatNames)[number];
export const formatMeaning = 'What a webhook gets: the event, or a message of Slack or Microsoft Teams.';

export const deliveryStates = ['pending', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** Without `cancelled`, because the person who cancelled the job knows. */
export const defaultOutcomes: readonly Outcome[] = ['completed', 'completed_with_rejects', 'held', 'failed'];

/** Without runs, because their jobs already send notifications. */
export const defaultJobKinds: readonly JobKind[] = ['load', 'export'];

declare module '../../postgres/columns.ts' {
  interface Known {
    notification_deliveries: { channel: Channel; state: DeliveryState };
    notification_events: { type: EventType };
    notification_subscriptions: {
      channel: Channel;
      format: Format;
      job_kinds: readonly JobKind[];
      outcomes: readonly Outcome[];
    };
  }
}
