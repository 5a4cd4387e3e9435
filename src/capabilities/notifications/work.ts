import { type BesideKind, type WorkSeam, withContext } from '../../tasks/seam.ts';
import { openSendContext } from './context.ts';
import { deliverNotification, pauseAfter, readDeliveryPolicy, type SendContext } from './deliver.ts';
import { killDelivery, killLostDeliveries } from './delivery-store.ts';

export const MAX_SENDS_PER_SUBSCRIPTION = 2;
/** Notifications that one worker sends at a time, and that are under way to one receiver. */
export const NOTIFICATIONS_AT_A_TIME = 4;

/** Attempts, pauses and time limits are those of `readDeliveryPolicy`, for errors of our own as for those of a receiver. */
const policy = readDeliveryPolicy({ notifyAllowPrivate: false });

/**
 * Sends one notification to one receiver. The task is made with the event, and done beside the jobs of the queue, so that a receiver
 * that hangs takes none of their places.
 */
export const deliveryJob: BesideKind<SendContext> = {
  name: 'delivery',
  stops: 'at the deadline',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: policy.attempts, defect: policy.attempts },
  maxLosses: policy.attempts,
  beside: NOTIFICATIONS_AT_A_TIME,
  maxOfGroup: MAX_SENDS_PER_SUBSCRIPTION,
  pauseMs: (failures) => pauseAfter(policy, Math.max(1, failures), null),
  run: deliverNotification,
  fail: ({ db }, { subjectId }, { message }) => killDelivery(db, subjectId, message),
  async reconcile({ db, log }) {
    const lost = await killLostDeliveries(db);
    if (lost > 0)
      log.error({ deliveries: lost }, 'notifications were given up: the processes that sent them were lost');
  },
};

export const work: WorkSeam = {
  open(system) {
    const context = openSendContext(system);
    return { kinds: [withContext(deliveryJob, context)], close: () => context.mail.close() };
  },
};
