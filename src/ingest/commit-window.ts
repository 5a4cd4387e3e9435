import { setTimeout as delay } from 'node:timers/promises';
import { MiB } from '../base/bytes.ts';
import { TransientError } from '../base/errors.ts';
import { RECORD_DEADLINE_MS } from '../base/limits.ts';
import { isDataError, isDeadlock } from '../postgres/sqlstate.ts';
import { MAX_WINDOW_RETRIES } from './limits.ts';
import { RecordsRefused, refused } from './records.ts';

/** Records that share a statement of the commit window, and the bytes they were sent in. */
const MAX_WINDOW_RECORDS = 500;
const MAX_WINDOW_BYTES = 4 * MiB;
/** Records that wait for a statement, and their bytes; one more is refused for the moment. */
const MAX_WAITING_RECORDS = 20_000;
export const MAX_WAITING_BYTES = 64 * MiB;

export interface CommitWindowOptions<T> {
  /** Writes all of them, in this order, or none; resolves when they are committed. */
  readonly write: (records: readonly T[]) => Promise<void>;
  /** Statements that may be under way at once. With one, records take effect in the order in which they came. */
  readonly inFlight: number;
  readonly maxWaitingBytes?: number;
  /** The longest time to an answer, in milliseconds. */
  readonly deadlineMs?: number;
  readonly onCommitted?: (records: number, seconds: number) => void;
  /** Told, with every window, that more or fewer records wait than when it was reported last. */
  readonly onWaiting?: (difference: number) => void;
}

export interface Sized {
  readonly bytes: number;
  readonly alone?: boolean;
}

interface Waiting<T> {
  readonly record: T;
  /** On the clock of `performance.now()`. */
  readonly since: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Records that arrive together share one statement and its commit. When nothing is under way a record waits for no more
 * than the others of the same turn of the event loop; else for a statement to end. So one caller at a time gets the
 * latency of a single insert, and the more there are the cheaper each becomes.
 *
 * idle ──record──► gathering (until the event loop turns) ──► writing ──► idle, or at once the next window
 */
export class CommitWindow<T extends Sized> {
  readonly #options: CommitWindowOptions<T>;
  #waiting: Waiting<T>[] = [];
  #waitingBytes = 0;
  #reported = 0;
  readonly #underWay = new Set<readonly Waiting<T>[]>();
  #watch: NodeJS.Timeout | undefined;
  #gathering = false;
  #onIdle: (() => void)[] = [];

  constructor(options: CommitWindowOptions<T>) {
    this.#options = options;
  }

  /**
   * Resolves when the record is committed.
   * @throws TransientError when too much waits already, the database is away, or does not answer in time (the record may
   * be committed all the same); InputError when the database refuses this record.
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
      this.#watch ??= setInterval(() => this.#giveUp(), this.#deadlineMs / 10);
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

  #gather(): void {
    if (this.#gathering || this.#underWay.size >= this.#options.inFlight) return;
    this.#gathering = true;
    setImmediate(() => {
      this.#gathering = false;
      this.#start();
    });
  }

  #start(): void {
    while (this.#underWay.size < this.#options.inFlight && this.#waiting.length > 0) {
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

  /**
   * A database that hangs breaks no connection and answers nothing. Its callers must not hang with it; the statement
   * that does keeps its place, since it may still be committed.
   */
  #giveUp(): void {
    const before = performance.now() - this.#deadlineMs;
    for (const window of this.#underWay) rejectOlder(window, before);
    const late = rejectOlder(this.#waiting, before);
    this.#waitingBytes -= late.reduce((bytes, { record }) => bytes + record.bytes, 0);
    this.#waiting = this.#waiting.slice(late.length);
    this.#reportWaiting();
    if (this.#underWay.size > 0 || this.#waiting.length > 0) return;
    clearInterval(this.#watch);
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

  /** Never rejects: every record of the window learns its own end. */
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

  /** Some record is one that Postgres refuses although it passed our checks. It must fail alone. */
  async #commitHalves(window: readonly Waiting<T>[]): Promise<void> {
    const middle = window.length >> 1;
    await this.#commit(window.slice(0, middle));
    await this.#commit(window.slice(middle));
  }

  async #write(records: readonly T[]): Promise<void> {
    for (let retries = 0; ; retries++) {
      try {
        return await this.#options.write(records);
      } catch (error) {
        // It was rolled back for certain, so writing it again doubles nothing.
        if (!isDeadlock(error) || retries === MAX_WINDOW_RETRIES) throw error;
        await delay(Math.random() * 20 * 2 ** retries);
      }
    }
  }
}

function rejectOlder<T>(records: readonly Waiting<T>[], before: number): readonly Waiting<T>[] {
  const end = records.findIndex(({ since }) => since >= before);
  const late = end === -1 ? records : records.slice(0, end);
  for (const { reject } of late) reject(new TransientError('the database does not answer'));
  return late;
}
