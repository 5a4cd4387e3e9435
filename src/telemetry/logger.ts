import {
  type DestinationStream,
  destination,
  type Logger,
  type LoggerOptions,
  pino,
  stdSerializers,
  stdTimeFunctions,
} from 'pino';
import pretty from 'pino-pretty';

type LoggerHooks = NonNullable<LoggerOptions['hooks']>['logMethod'];

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
  if (!process.stderr.isTTY) return pino(options, destination({ dest: 2, sync: false }));
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
 * A warning or an error that is the same as one of the last minute, of no job, is counted and not logged; the next one after
 * that minute says how many there were.
 */
export function collapseRepeats(now: () => number = () => performance.now()): NonNullable<LoggerHooks> {
  const seen = new Map<string, { since: number; repeats: number }>();
  return function logMethod(args, method, level) {
    const [fields, message] = args as readonly unknown[];
    if (level < warnLevel || (isRecord(fields) && 'job_id' in fields)) return method.apply(this, args);
    const error = isRecord(fields) ? fields['err'] : undefined;
    const key = `${level} ${isRecord(fields) ? String(message) : String(fields)} ${isRecord(error) ? String(error['message']) : ''}`;
    const last = seen.get(key);
    if (last !== undefined && now() - last.since < repeatsMs) {
      last.repeats++;
      return;
    }
    if (seen.size >= mostRemembered) seen.clear();
    seen.set(key, { since: now(), repeats: 0 });
    if (last === undefined || last.repeats === 0) return method.apply(this, args);
    const repeated = { repeated: last.repeats };
    if (isRecord(fields)) return method.call(this, { ...fields, ...repeated }, String(message));
    return method.call(this, repeated, String(fields));
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** pg hangs the whole connection on the errors of a pool: nobody wants to read that at night. */
function describeError(error: Error): object {
  const described: Record<string, unknown> = { ...stdSerializers.err(error) };
  delete described['client'];
  return described;
}
