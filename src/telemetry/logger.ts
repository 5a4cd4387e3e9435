import { destination, type Logger, pino, stdSerializers, stdTimeFunctions } from 'pino';
import pretty from 'pino-pretty';

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
  if (!process.stderr.isTTY) return pino(options, destination({ dest: 2, sync: false }));
  return pino(options, pretty({ destination: 2, ignore: 'pid', translateTime: 'HH:MM:ss.l', sync: true }));
}

/** pg hangs the whole connection on the errors of a pool: nobody wants to read that at night. */
function describeError(error: Error): object {
  const described: Record<string, unknown> = { ...stdSerializers.err(error) };
  delete described['client'];
  return described;
}
