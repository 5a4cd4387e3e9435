import { type Logger, pino, stdSerializers, stdTimeFunctions } from 'pino';
import pretty from 'pino-pretty';
import { LogSink } from './log-sink.ts';

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

/** JSON lines on standard error, or readable ones where that is a terminal. */
export function createLogger(level: string, name: string): Logger {
  const options = {
    level,
    base: { name, pid: process.pid },
    timestamp: stdTimeFunctions.isoTime,
    serializers: { err: describeError },
    redact: { paths: redacted, censor: '[redacted]' },
  };
  if (!process.stderr.isTTY) {
    const sink = new LogSink(2, (lines) => describeDropped(name, lines));
    process.once('exit', () => sink.flushSync());
    return pino(options, sink);
  }
  return pino(options, pretty({ destination: 2, ignore: 'pid', translateTime: 'HH:MM:ss.l', sync: true }));
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
