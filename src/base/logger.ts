import { write, writeSync } from 'node:fs';
import {
  type DestinationStream,
  type Logger,
  type LoggerOptions,
  levels,
  pino,
  stdSerializers,
  stdTimeFunctions,
  symbols,
} from 'pino';
import { plural } from './wording.ts';

type LogMethod = NonNullable<LoggerOptions['hooks']>['logMethod'];

const redacted = [
  'authorization',
  'headers.authorization',
  'req.headers.authorization',
  'api_key',
  'key',
  'secret',
  'password',
  'metadata',
  'url',
  'databaseUrl',
];

/**
 * Writes to standard error: readable lines on a terminal, otherwise JSON. Repeated problems are
 * counted.
 */
export function createLogger(level: string, name: string): Logger {
  const options = {
    level,
    base: { name, pid: process.pid },
    timestamp: stdTimeFunctions.isoTime,
    serializers: { err: describeError },
    redact: { paths: redacted, censor: '[redacted]' },
    hooks: { logMethod: collapseRepeats() },
  };
  if (!process.stderr.isTTY) {
    const sink = new LogSink(2, (lines) => describeDropped(name, lines));
    process.once('exit', () => sink.flushSync());
    return pino(options, sink);
  }
  return pino(options, forPeople());
}

/** Messages that `sluice start` prints itself. A terminal does not show them again. */
const printedMessages = ['embedded Postgres is ready', 'database migrated', 'listening', 'pruned'].map(
  (message) => `"msg":${JSON.stringify(message)}}`,
);

function forPeople(): DestinationStream {
  return {
    write(line) {
      if (printedMessages.some((message) => line.trimEnd().endsWith(message))) return;
      const fields = JSON.parse(line) as Readonly<Record<string, unknown>>;
      const time = new Date(String(fields['time'])).toTimeString().slice(0, 8);
      const level = (levels.labels[Number(fields['level'])] ?? '').toUpperCase();
      writeSync(2, `[${time}] ${level}: ${describeLine(fields)}\n`);
    },
  };
}

const hiddenFields: ReadonlySet<string> = new Set([
  'level',
  'time',
  'name',
  'pid',
  'msg',
  'err',
  'request_id',
  'trace_id',
  'span_id',
]);

function describeLine(line: Readonly<Record<string, unknown>>): string {
  const error = line['err'];
  const why = isRecord(error) ? `: ${String(error['message'] ?? '').split('\n', 1)[0]}` : '';
  const fields = Object.entries(line).flatMap(([name, value]) =>
    hiddenFields.has(name) || typeof value === 'object' ? [] : [`${name}=${String(value)}`],
  );
  return [`${String(line['msg'] ?? '')}${why}`, ...fields].join('  ');
}

const repeatsMs = 60_000;
const maxRemembered = 1_000;
const warnLevel = 40;

/**
 * Drops repeats of a problem within a minute, unless they belong to a job or request. When the
 * problem is logged again, that line reports the number of dropped repeats.
 */
export function collapseRepeats(now: () => number = () => performance.now()): NonNullable<LogMethod> {
  const seen = new Map<string, { readonly since: number; repeats: number }>();
  return function logMethod(args, method, level) {
    const [first, second] = args as readonly unknown[];
    const [fields, message] = isRecord(first) ? [first, String(second)] : [{}, String(first)];
    if (level < warnLevel || hasJobOrRequest(fields) || hasJobOrRequest(this.bindings()))
      return method.apply(this, args);
    const key = `${level} ${message} ${keyOf(fields)}`;
    const last = seen.get(key);
    if (last !== undefined && now() - last.since < repeatsMs) {
      last.repeats++;
      return;
    }
    if (seen.size >= maxRemembered) seen.clear();
    seen.set(key, { since: now(), repeats: 0 });
    if (last === undefined || last.repeats === 0) return method.apply(this, args);
    return method.call(this, { ...fields, repeated: last.repeats }, message);
  };
}

function hasJobOrRequest(fields: Readonly<Record<string, unknown>>): boolean {
  return 'job_id' in fields || 'request_id' in fields || 'reqId' in fields;
}

/**
 * Returns a key that is equal for repeats of a problem. It contains the error message and all
 * fields that are not objects.
 */
function keyOf(fields: Readonly<Record<string, unknown>>): string {
  const { err } = fields;
  const plain = Object.entries(fields).filter(([, value]) => typeof value !== 'object');
  return JSON.stringify([
    isRecord(err) ? String(err['message']) : '',
    ...plain.map(([name, value]) => [name, String(value)]),
  ]);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/**
 * Returns a notice about dropped lines in the form of the logger's lines. The logger itself would
 * put the notice after the lines that are still waiting.
 */
function describeDropped(name: string, lines: number): string {
  const time = new Date().toISOString();
  const msg = `${plural(lines, 'line')} of this log could not be written`;
  return `${JSON.stringify({ level: 40, time, name, pid: process.pid, dropped_lines: lines, msg })}\n`;
}

/** Omits `client`, the connection that pg attaches to errors of the pool. */
function describeError(error: Error): object {
  const described: Record<string, unknown> = { ...stdSerializers.err(error) };
  delete described['client'];
  return described;
}

const maxWaitingBytes = 1024 * 1024;
const retryMs = 1_000;
const busyMs = 100;
const newline = 0x0a;

/**
 * Writes log lines asynchronously. If the disk is full or the reader is slow, it drops lines and
 * counts them.
 */
export class LogSink {
  dropped = 0;
  readonly #descriptor: number;
  readonly #describe: (dropped: number) => string;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #unnotified = 0;
  /** True if only a part of the last line was written. */
  #isTorn = false;

  /** `describe` returns the line that reports the number of dropped lines. */
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

  /** Writes the waiting lines at exit. If that fails, they are lost. */
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
    this.#unnotified += lines;
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
    const notified = this.#unnotified;
    const preface = (this.#isTorn ? '\n' : '') + (notified > 0 ? this.#describe(notified) : '');
    const bytes = Buffer.from(preface + lines.join(''));
    return { bytes, prefaceBytes: Buffer.byteLength(preface), notified };
  }

  #writeFrom(batch: Batch, at: number): void {
    write(this.#descriptor, batch.bytes, at, (error, written) => {
      if (error?.code === 'EAGAIN' || error?.code === 'EBUSY') {
        // The pipe is full, because its reader is slow.
        setTimeout(() => this.#writeFrom(batch, at), busyMs).unref();
      } else if (error !== null) {
        this.#lose(batch, at);
        setTimeout(() => this.#writeNext(), retryMs).unref();
      } else if (at + written < batch.bytes.length) {
        this.#writeFrom(batch, at + written);
      } else {
        this.#unnotified -= batch.notified;
        this.#isTorn = false;
        this.#writeNext();
      }
    });
  }

  #lose({ bytes, prefaceBytes, notified }: Batch, at: number): void {
    if (at >= prefaceBytes) this.#unnotified -= notified;
    if (at > 0) this.#isTorn = bytes[at - 1] !== newline;
    const rest = bytes.toString('latin1', Math.max(at, prefaceBytes));
    this.#drop(rest.split('\n').length - 1);
  }
}

export function droppedLines(log: Logger): number {
  const stream: unknown = (log as unknown as Record<symbol, unknown>)[symbols.streamSym];
  return stream instanceof LogSink ? stream.dropped : 0;
}

interface Batch {
  readonly bytes: Buffer;
  readonly prefaceBytes: number;
  readonly notified: number;
}
