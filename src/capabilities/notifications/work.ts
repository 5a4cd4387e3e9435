import { type RunnerKind, type WorkSeam, withContext } from '../../jobs/seam.ts';
import {
  deliverNotification,
  openSendContext,
  pauseAfter,
  readDeliveryPolicy,
  type SendContext,
} from './deliver.ts';
import { killDelivery, killLostDeliveries } from './delivery-store.ts';

export const MAX_SENDS_PER_SUBSCRIPTION = 2;
export const NOTIFICATIONS_AT_A_TIME = 4;

/**
 * The task of a delivery has the same attempts and pauses as the delivery. These attempts and
 * pauses also apply after a failure of our own code.
 */
const policy = readDeliveryPolicy({ notifyAllowPrivate: false });

/** Bypasses the job queue, so that a receiver that hangs does not block jobs. */
export const deliveryJob: RunnerKind<SendContext> = {
  name: 'delivery',
  stops: 'at the deadline',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: policy.attempts, defect: policy.attempts },
  maxLosses: policy.attempts,
  maxOutsideQueue: NOTIFICATIONS_AT_A_TIME,
  maxOfGroup: MAX_SENDS_PER_SUBSCRIPTION,
  pauseMs: (failures) => pauseAfter(policy, failures, null),
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
