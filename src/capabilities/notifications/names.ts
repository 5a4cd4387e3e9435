import type { Outcome } from '../../domain/job.ts';
import type { JobEvent } from '../../tasks/job-seam.ts';

/** Kinds of jobs. A `schedule` is a run of a schedule, with any number of jobs. */
export const jobKinds = ['load', 'export', 'schedule'] as const;
export type JobKind = (typeof jobKinds)[number];

export type EventType = JobEvent['type'] | 'ping';

export const channels = ['webhook', 'email'] as const;
export type Channel = (typeof channels)[number];

/** pending → delivered | dead. A replay makes it pending again. */
export const deliveryStates = ['pending', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** Default of a subscription, without `cancelled`, which a person decided. */
export const defaultOutcomes: readonly Outcome[] = ['completed', 'completed_with_rejects', 'held', 'failed'];

/** Default of a subscription. The jobs of a run send their own notifications. */
export const defaultJobKinds: readonly JobKind[] = ['load', 'export'];

declare module '../../postgres/columns.ts' {
  interface Known {
    notification_deliveries: { channel: Channel; state: DeliveryState };
    notification_events: { type: EventType };
    notification_subscriptions: {
      channel: Channel;
      job_kinds: readonly JobKind[];
      outcomes: readonly Outcome[];
    };
  }
}
