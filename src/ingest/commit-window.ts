import { TransientError } from '../base/errors.ts';
import { MiB, RECORD_DEADLINE_MS } from '../base/limits.ts';
import { growing, type RetryPolicy, retry } from '../base/retry.ts';
import { type Poller, startWatch } from '../base/timers.ts';
import { isDataError, isDeadlock } from '../postgres/sqlstate.ts';
import { MAX_WINDOW_TRIES, RecordsRefused, refused } from './records.ts';

const MAX_WINDOW_RECORDS = 500;
const MAX_WINDOW_BYTES = 4 * MiB;
const MAX_WAITING_RECORDS = 20_000;
export const MAX_WAITING_BYTES = 64 * MiB;

export interface CommitWindowOptions<T> {
  /** Writes all records in order, or none. Resolves after the commit. */
  readonly write: (records: readonly T[]) => Promise<void>;
  /**
   * Number of concurrent statements. With one statement, records take effect in the order of
   * arrival.
   */
  readonly inFlight: number;
  /**
   * Number of waiting records at which another statement starts while one is running. Default: 1.
   */
  readonly joinsAt?: number;
  readonly maxWaitingBytes?: number;
  /** Maximum time until the caller gets a result, in milliseconds. */
  readonly deadlineMs?: number;
  readonly onCommitted?: (records: number, seconds: number) => void;
  /** Called when the number of waiting records changes. */
  readonly onWaiting?: (difference: number) => void;
}

export interface Sized {
  readonly bytes: number;
  readonly alone?: boolean;
}

interface Waiting<T> {
  readonly record: T;
  /** Time of arrival, on the clock of `performance.now()`. */
  readonly since: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Combines records that arrive together into one statement and one commit. A record waits for the
 * other records of its turn of the event loop. If a statement is running, the record waits until
 * the statement ends. So a single record takes as long as one insert, and concurrent records share
 * the cost of a commit.
 */
export class CommitWindow<T extends Sized> {
  readonly #options: CommitWindowOptions<T>;
  #waiting: Waiting<T>[] = [];
  #waitingBytes = 0;
  #reported = 0;
  readonly #underWay = new Set<readonly Waiting<T>[]>();
  #watch: Poller | undefined;
  #gathering = false;
  #onIdle: (() => void)[] = [];

  constructor(options: CommitWindowOptions<T>) {
    this.#options = options;
  }

  /**
   * Resolves when the record is committed.
   * @throws TransientError if too many records wait, or if the database is unavailable or late (the
   * record may still be committed). InputError if the database refuses the record
   */
  submit(record: T): Promise<void> {
    if (
      this.#waiting.length >= MAX_WAITING_RECORDS ||
      this.#waitingBytes + record.bytes > (this.#options.maxWaitingBytes ?? MAX_WAITING_BYTES)
    ) {
      return Promise.reject(new TransientError('too many records wait for the database'));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ record, since: performance.now(), resolve, reject });
      this.#waitingBytes += record.bytes;
      this.#watch ??= startWatch(this.#deadlineMs / 10, () => this.#giveUp());
      this.#gather();
    });
  }

  get isIdle(): boolean {
    return this.#underWay.size === 0 && this.#waiting.length === 0;
  }

  async drained(): Promise<void> {
    if (this.isIdle) return;
    await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  get #mayStart(): boolean {
    const { inFlight, joinsAt = 1 } = this.#options;
    const underWay = this.#underWay.size;
    return underWay < inFlight && this.#waiting.length >= (underWay === 0 ? 1 : joinsAt);
  }

  #gather(): void {
    if (this.#gathering || !this.#mayStart) return;
    this.#gathering = true;
    setImmediate(() => {
      this.#gathering = false;
      this.#start();
    });
  }

  #start(): void {
    while (this.#mayStart) {
      const window = this.#take();
      this.#underWay.add(window);
      this.#reportWaiting();
      void this.#commit(window).finally(() => {
        this.#underWay.delete(window);
        if (this.#waiting.length > 0) this.#start();
        else if (this.#underWay.size === 0) for (const idle of this.#onIdle.splice(0)) idle();
      });
    }
  }

  #reportWaiting(): void {
    if (this.#reported === this.#waiting.length) return;
    this.#options.onWaiting?.(this.#waiting.length - this.#reported);
    this.#reported = this.#waiting.length;
  }

  get #deadlineMs(): number {
    return this.#options.deadlineMs ?? RECORD_DEADLINE_MS;
  }

  /** The statement of a late record still counts as running, because it may still commit. */
  #giveUp(): void {
    const deadline = performance.now() - this.#deadlineMs;
    for (const window of this.#underWay) rejectOlder(window, deadline);
    const late = rejectOlder(this.#waiting, deadline);
    this.#waitingBytes -= late.reduce((bytes, { record }) => bytes + record.bytes, 0);
    this.#waiting = this.#waiting.slice(late.length);
    this.#reportWaiting();
    if (this.#underWay.size > 0 || this.#waiting.length > 0) return;
    void this.#watch?.stop();
    this.#watch = undefined;
  }

  #take(): Waiting<T>[] {
    let bytes = 0;
    let count = 0;
    for (const { record } of this.#waiting) {
      const isFull = record.alone === true || bytes + record.bytes > MAX_WINDOW_BYTES;
      if (count === MAX_WINDOW_RECORDS || (count > 0 && isFull)) break;
      bytes += record.bytes;
      count++;
      if (record.alone === true) break;
    }
    const window = count === this.#waiting.length ? this.#waiting : this.#waiting.slice(0, count);
    this.#waiting = window === this.#waiting ? [] : this.#waiting.slice(count);
    this.#waitingBytes -= bytes;
    return window;
  }

  /** Never rejects. */
  async #commit(window: readonly Waiting<T>[]): Promise<void> {
    const startedAt = performance.now();
    try {
      await this.#write(window.map(({ record }) => record));
    } catch (error) {
      if (error instanceof RecordsRefused) await this.#commitOthers(window, error);
      else if (!isDataError(error)) for (const { reject } of window) reject(error);
      else if (window.length === 1) window[0]?.reject(refused(error));
      else await this.#commitHalves(window);
      return;
    }
    this.#options.onCommitted?.(window.length, (performance.now() - startedAt) / 1000);
    for (const { resolve } of window) resolve();
  }

  async #commitOthers(window: readonly Waiting<T>[], { causes }: RecordsRefused): Promise<void> {
    for (const { record, reject } of window) if (causes.has(record)) reject(causes.get(record));
    const others = window.filter(({ record }) => !causes.has(record));
    if (others.length > 0) await this.#commit(others);
  }

  /** Isolates the record that PostgreSQL refused although it passed our checks. */
  async #commitHalves(window: readonly Waiting<T>[]): Promise<void> {
    const middle = window.length >> 1;
    await this.#commit(window.slice(0, middle));
    await this.#commit(window.slice(middle));
  }

  /** PostgreSQL rolls back a deadlocked window as a whole, so a retry stores no record twice. */
  #write(records: readonly T[]): Promise<void> {
    return retry(afterDeadlock, () => this.#options.write(records));
  }
}

const longestPauseMs = growing(20);
const afterDeadlock: RetryPolicy = {
  tries: MAX_WINDOW_TRIES,
  pauseMs: (failures) => Math.random() * longestPauseMs(failures),
  isTransient: isDeadlock,
};

function rejectOlder<T>(records: readonly Waiting<T>[], before: number): readonly Waiting<T>[] {
  const end = records.findIndex(({ since }) => since >= before);
  const late = end === -1 ? records : records.slice(0, end);
  for (const { reject } of late) reject(new TransientError('the database does not answer'));
  return late;
}
