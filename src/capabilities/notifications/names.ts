import type { Outcome } from '../../domain/job.ts';
import type { JobEvent } from '../../tasks/job-seam.ts';

/** Kinds of jobs. `schedule` is a run of a schedule. A run has any number of jobs. */
export const jobKinds = ['load', 'export', 'schedule'] as const;
export type JobKind = (typeof jobKinds)[number];

export type EventType = JobEvent['type'] | 'ping';

export const channels = ['webhook', 'email'] as const;
export type Channel = (typeof channels)[number];

/** Formats of webhooks: the event for a program, or a message for a chat. */
export const formatNames = ['standard', 'slack', 'teams'] as const;
export type Format = (typeof formatNames)[number];
export const formatMeaning = 'What a webhook gets: the event, or a message of Slack or Microsoft Teams.';

/** States of a delivery: pending → delivered | dead. A replay makes the delivery pending again. */
export const deliveryStates = ['pending', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/**
 * Default outcomes of a subscription. `cancelled` is not included, because the person who cancelled
 * the job knows.
 */
export const defaultOutcomes: readonly Outcome[] = ['completed', 'completed_with_rejects', 'held', 'failed'];

/** Default kinds of jobs. Runs are not included, because their jobs already send notifications. */
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
