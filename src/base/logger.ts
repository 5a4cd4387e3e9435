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

/** Fields of log lines in which a secret or a person's data could appear. */
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

/** JSON lines on standard error, or readable ones on a terminal. What goes wrong again and again is logged once, then counted. */
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

/** Lines that `sluice start` prints itself, in words for people. */
const saidOtherwise = ['embedded Postgres is ready', 'database migrated', 'listening', 'pruned'].map(
  (message) => `"msg":${JSON.stringify(message)}}`,
);

function forPeople(): DestinationStream {
  return {
    write(line) {
      if (saidOtherwise.some((said) => line.trimEnd().endsWith(said))) return;
      const fields = JSON.parse(line) as Readonly<Record<string, unknown>>;
      const time = new Date(String(fields['time'])).toTimeString().slice(0, 8);
      const level = (levels.labels[Number(fields['level'])] ?? '').toUpperCase();
      writeSync(2, `[${time}] ${level}: ${describeLine(fields)}\n`);
    },
  };
}

const notShown: ReadonlySet<string> = new Set([
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
    notShown.has(name) || typeof value === 'object' ? [] : [`${name}=${String(value)}`],
  );
  return [`${String(line['msg'] ?? '')}${why}`, ...fields].join('  ');
}

const repeatsMs = 60_000;
const mostRemembered = 1_000;
const warnLevel = 40;

/** Counts a warning or error of no job or request that repeats within a minute; the next one after it says how many there were. */
export function collapseRepeats(now: () => number = () => performance.now()): NonNullable<LogMethod> {
  const seen = new Map<string, { readonly since: number; repeats: number }>();
  return function logMethod(args, method, level) {
    const [first, second] = args as readonly unknown[];
    const [fields, message] = isRecord(first) ? [first, String(second)] : [{}, String(first)];
    if (level < warnLevel || isOfOne(fields) || isOfOne(this.bindings())) return method.apply(this, args);
    const key = `${level} ${message} ${keyOf(fields)}`;
    const last = seen.get(key);
    if (last !== undefined && now() - last.since < repeatsMs) {
      last.repeats++;
      return;
    }
    if (seen.size >= mostRemembered) seen.clear();
    seen.set(key, { since: now(), repeats: 0 });
    if (last === undefined || last.repeats === 0) return method.apply(this, args);
    return method.call(this, { ...fields, repeated: last.repeats }, message);
  };
}

function isOfOne(fields: Readonly<Record<string, unknown>>): boolean {
  return 'job_id' in fields || 'request_id' in fields || 'reqId' in fields;
}

/** Identifies a line by the message of its error and by its plain fields. */
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

/** Past the logger, whose lines wait behind it. */
function describeDropped(name: string, lines: number): string {
  const time = new Date().toISOString();
  const msg = `${plural(lines, 'line')} of this log could not be written`;
  return `${JSON.stringify({ level: 40, time, name, pid: process.pid, dropped_lines: lines, msg })}\n`;
}

/** pg hangs the whole connection on the errors of a pool: nobody wants to read that at night. */
function describeError(error: Error): object {
  const described: Record<string, unknown> = { ...stdSerializers.err(error) };
  delete described['client'];
  return described;
}

/** Lines that wait to be written; beyond it they are dropped. */
const maxWaitingBytes = 1024 * 1024;
/** After a line could not be written, until the next try. */
const retryMs = 1_000;
const busyMs = 100;
const newline = 0x0a;

/** Writes the lines of a log beside the work: a full disk or a slow reader costs lines, whose number is logged once there is room. */
export class LogSink {
  dropped = 0;
  readonly #descriptor: number;
  readonly #describe: (dropped: number) => string;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  /** Dropped, and not said yet. */
  #unnotified = 0;
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

  /** Writes what is left when the process ends; what cannot be written then is lost. */
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
    const preface =
      (this.#isTorn ? '\n' : '') + (this.#unnotified > 0 ? this.#describe(this.#unnotified) : '');
    return { bytes: Buffer.from(preface + lines.join('')), prefaceBytes: Buffer.byteLength(preface) };
  }

  #writeFrom(batch: Batch, at: number): void {
    write(this.#descriptor, batch.bytes, at, (error, written) => {
      if (error?.code === 'EAGAIN' || error?.code === 'EBUSY') {
        // A pipe whose reader is slow takes the rest later.
        setTimeout(() => this.#writeFrom(batch, at), busyMs).unref();
      } else if (error !== null) {
        this.#lose(batch, at);
        setTimeout(() => this.#writeNext(), retryMs).unref();
      } else if (at + written < batch.bytes.length) {
        this.#writeFrom(batch, at + written);
      } else {
        this.#unnotified = 0;
        this.#isTorn = false;
        this.#writeNext();
      }
    });
  }

  #lose({ bytes, prefaceBytes }: Batch, at: number): void {
    if (at >= prefaceBytes) this.#unnotified = 0;
    if (at > 0) this.#isTorn = bytes[at - 1] !== newline;
    const rest = bytes.toString('latin1', Math.max(at, prefaceBytes));
    this.#drop(rest.split('\n').length - 1);
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
