import type { Config } from '../config.ts';

const minuteMs = 60_000;

/** How hard it is tried, and where it may lead. Tests have their own; everybody else has `readDeliveryPolicy`. */
export interface DeliveryPolicy {
  readonly attempts: number;
  /** After the first attempt. */
  readonly firstPauseMs: number;
  /** By which each pause is longer than the one before. */
  readonly pauseFactor: number;
  /** Up to this share of a pause is added to it, or taken off, by chance: what failed together comes back apart. */
  readonly jitter: number;
  /** A receiver may ask for a longer pause (`Retry-After`), up to this. */
  readonly longestAskedPauseMs: number;
  readonly connectTimeoutMs: number;
  /** From the look-up of the name to the head of the answer. */
  readonly totalTimeoutMs: number;
  readonly allowPrivate: boolean;
  readonly allowHttp: boolean;
}

export const attemptsPerDelivery = 8;

/** Eight attempts; the pauses between them are 15 s, 1, 4, 16 and 64 minutes, 4.3 and 17 hours: most of a day. */
const persistence = {
  attempts: attemptsPerDelivery,
  firstPauseMs: minuteMs / 4,
  pauseFactor: 4,
  jitter: 0.2,
  longestAskedPauseMs: 6 * 60 * minuteMs,
  connectTimeoutMs: 5_000,
  totalTimeoutMs: 15_000,
} as const;

export function readDeliveryPolicy(
  config: Pick<Config, 'notifyAllowPrivate' | 'notifyAllowHttp'>,
): DeliveryPolicy {
  return { ...persistence, allowPrivate: config.notifyAllowPrivate, allowHttp: config.notifyAllowHttp };
}

/** Milliseconds to wait after the attempt of this number, from 1. `chance` is from 0 to 1. */
export function pauseAfter(
  policy: DeliveryPolicy,
  attempt: number,
  askedMs: number | null,
  chance = Math.random(),
): number {
  const pause = policy.firstPauseMs * policy.pauseFactor ** (attempt - 1);
  const jittered = pause * (1 + policy.jitter * (2 * chance - 1));
  return Math.round(Math.max(jittered, Math.min(askedMs ?? 0, policy.longestAskedPauseMs)));
}
