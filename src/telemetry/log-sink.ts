import { write, writeSync } from 'node:fs';
import { type Logger, symbols } from 'pino';

/** Lines that wait to be written; beyond it they are dropped. */
const maxWaitingBytes = 1024 * 1024;
/** After a line could not be written, until the next try. */
const retryMs = 1_000;
/** After a pipe was full. */
const busyMs = 100;
const newline = 0x0a;

/**
 * Where the lines of a log go: a descriptor, written to beside the work. A disk that is full, a reader that is slow or gone
 * costs lines and nothing else. How many is counted, and said once lines can be written again.
 */
export class LogSink {
  /** Lines that were never written. */
  dropped = 0;
  readonly #descriptor: number;
  readonly #describe: (dropped: number) => string;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  /** Dropped, and not said yet. */
  #untold = 0;
  /** A line was begun whose end could not be written. */
  #isTorn = false;

  /** `describe`: the line that says how many were dropped. */
  constructor(descriptor: number, describe: (dropped: number) => string) {
    this.#descriptor = descriptor;
    this.#describe = describe;
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#waitingBytes + bytes > maxWaitingBytes) {
      this.#drop(1);
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += bytes;
    if (!this.#isWriting) this.#writeNext();
  }

  /** What is left when the process ends; what cannot be written then is lost. */
  flushSync(): void {
    const batch = this.#take();
    if (batch === null) return;
    let at = 0;
    try {
      while (at < batch.bytes.length) at += writeSync(this.#descriptor, batch.bytes, at);
    } catch {
      this.#lose(batch, at);
    }
  }

  #drop(lines: number): void {
    this.dropped += lines;
    this.#untold += lines;
  }

  #writeNext(): void {
    const batch = this.#take();
    this.#isWriting = batch !== null;
    if (batch !== null) this.#writeFrom(batch, 0);
  }

  #take(): Batch | null {
    if (this.#waiting.length === 0) return null;
    const lines = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    const preface = (this.#isTorn ? '\n' : '') + (this.#untold > 0 ? this.#describe(this.#untold) : '');
    return { bytes: Buffer.from(preface + lines.join('')), prefaceBytes: Buffer.byteLength(preface) };
  }

  #writeFrom(batch: Batch, at: number): void {
    write(this.#descriptor, batch.bytes, at, (error, written) => {
      if (error !== null && isBusy(error)) {
        setTimeout(() => this.#writeFrom(batch, at), busyMs).unref();
      } else if (error !== null) {
        this.#lose(batch, at);
        setTimeout(() => this.#writeNext(), retryMs).unref();
      } else if (at + written < batch.bytes.length) {
        this.#writeFrom(batch, at + written);
      } else {
        this.#untold = 0;
        this.#isTorn = false;
        this.#writeNext();
      }
    });
  }

  /** All from `at` on. */
  #lose({ bytes, prefaceBytes }: Batch, at: number): void {
    if (at >= prefaceBytes) this.#untold = 0;
    if (at > 0) this.#isTorn = bytes[at - 1] !== newline;
    this.#drop(countLines(bytes.subarray(Math.max(at, prefaceBytes))));
  }
}

/** Lines of this logger that could not be written: a full disk, a reader that is gone. */
export function droppedLines(log: Logger): number {
  const stream: unknown = (log as unknown as Record<symbol, unknown>)[symbols.streamSym];
  return stream instanceof LogSink ? stream.dropped : 0;
}

/** Lines, and before them what is said of earlier ones. */
interface Batch {
  readonly bytes: Buffer;
  readonly prefaceBytes: number;
}

/** A pipe whose reader is slow takes the rest later. */
function isBusy({ code }: NodeJS.ErrnoException): boolean {
  return code === 'EAGAIN' || code === 'EBUSY';
}

function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) count++;
  return count;
}
