import pLimit from 'p-limit';
import { TransientError } from '../domain/errors.ts';
import { MAX_WAITING_LOOKUPS, RECORD_DEADLINE_MS, UNKNOWN_LOOKUPS_AT_A_TIME } from '../domain/limits.ts';
import { withDeadline } from '../with-deadline.ts';
import { type Caller, isRefusal, type KeyRefusal } from './verify-key.ts';

type Found = Caller | KeyRefusal;

/** The length beyond which nothing is remembered; our keys and cookies are shorter. */
const maxLength = 256;

/**
 * LookupTurns decides when keys and cookies are looked up. Those that were valid at their last look-up are looked up at once.
 * All others share a few turns, so that strangers cannot use up the database connections of callers with a key.
 */
export class LookupTurns {
  readonly #good = new Set<string>();
  readonly #maxGood: number;
  readonly #others = pLimit(UNKNOWN_LOOKUPS_AT_A_TIME);

  constructor(maxGood = 1_000) {
    this.#maxGood = maxGood;
  }

  /** Throws `TransientError` if too many wait already, or if the database does not answer. */
  async run(credential: string, lookUp: () => Promise<Found>): Promise<Found> {
    const find = (): Promise<Found> => inTime(lookUp());
    const found = await (this.#good.has(credential) ? find() : this.#inTurn(find));
    this.#remember(credential, found);
    return found;
  }

  #inTurn(find: () => Promise<Found>): Promise<Found> {
    if (this.#others.pendingCount >= MAX_WAITING_LOOKUPS) {
      throw new TransientError('too many unknown keys are being looked up');
    }
    return this.#others(find);
  }

  /** Remembers valid keys only, so that no stranger displaces them. */
  #remember(credential: string, found: Found): void {
    this.#good.delete(credential);
    if (isRefusal(found) || credential.length > maxLength) return;
    for (const oldest of this.#good) {
      if (this.#good.size < this.#maxGood) break;
      this.#good.delete(oldest);
    }
    this.#good.add(credential);
  }
}

/** Bounds the wait for an answer that may never come: a frozen database breaks no connection. */
export function inTime<T>(answer: Promise<T>): Promise<T> {
  return withDeadline(answer, RECORD_DEADLINE_MS, () => {
    throw new TransientError('the database does not answer');
  });
}
