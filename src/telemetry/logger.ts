import {
  type DestinationStream,
  type Logger,
  type LoggerOptions,
  pino,
  stdSerializers,
  stdTimeFunctions,
} from 'pino';
import pretty from 'pino-pretty';
import { LogSink } from './log-sink.ts';

type LogMethod = NonNullable<LoggerOptions['hooks']>['logMethod'];

/** Where a secret or a person's data could appear in what is logged. */
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
 * JSON lines on standard error, or readable ones where that is a terminal. What goes wrong again and again is logged once and
 * then counted.
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

/** What `sluice start` prints itself, in words for people. */
const saidOtherwise = ['embedded Postgres is ready', 'database migrated', 'listening', 'pruned'].map(
  (message) => `"msg":${JSON.stringify(message)}}`,
);

/** One line an event, without stacks. */
function forPeople(): DestinationStream {
  const lines = pretty({
    destination: 2,
    sync: true,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'pid,name',
    hideObject: true,
    messageFormat: describeLine,
  });
  return {
    write(line) {
      if (!saidOtherwise.some((said) => line.trimEnd().endsWith(said))) lines.write(line);
    },
  };
}

const notShown: ReadonlySet<string> = new Set(['level', 'time', 'name', 'pid', 'msg', 'err', 'request_id']);

/** The message, why, and what else is short. */
export function describeLine(line: Readonly<Record<string, unknown>>): string {
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

/**
 * A warning or an error that is the same as one of the last minute, and belongs to no job or request, is counted and not
 * logged; the next one after that minute says how many there were.
 */
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

/** Of an error its message, of the rest what is no object. */
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
  const msg = `${lines} lines of this log could not be written`;
  return `${JSON.stringify({ level: 40, time, name, pid: process.pid, dropped_lines: lines, msg })}\n`;
}

/** pg hangs the whole connection on the errors of a pool: nobody wants to read that at night. */
function describeError(error: Error): object {
  const described: Record<string, unknown> = { ...stdSerializers.err(error) };
  delete described['client'];
  return described;
}
