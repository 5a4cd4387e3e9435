import { inbox } from './capabilities/inbox/inbox.ts';
import { notifications } from './capabilities/notifications/notifications.ts';
import type { Capability } from './capability.ts';

/** The capabilities of this build. Their hooks run in this order. */
export const capabilities: readonly Capability[] = [inbox, notifications];
