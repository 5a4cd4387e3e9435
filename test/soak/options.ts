import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

export interface Options {
  readonly minutes: number;
  readonly seed: number;
  readonly queue: 'redis' | 'postgres';
  /** Nothing is killed, paused or emptied. */
  readonly kills: boolean;
  /** Keys written out of order are not replayed: the soak must notice. */
  readonly forgetReplays: boolean;
  /** Mean time between two faults. */
  readonly faultSeconds: number;
  /** The folder stays whatever the outcome. */
  readonly keep: boolean;
  /** The file that gets the report as JSON; null: none. */
  readonly json: string | null;
}

export const usage = `npm run soak [-- flags]

  --minutes N         how long the service is used and broken (10)
  --seed N            determines what is sent, and which faults come in which order (of the moment)
  --queue QUEUE       redis or postgres (redis, if redis-server is on the PATH)
  --fault-seconds N   mean time between two faults (7)
  --no-kills          nothing is broken: the load alone
  --forget-replays    first chunks come last, and keys written out of order are not replayed: it must notice
  --json FILE         the report, for programs
  --keep              data and logs stay; after a failure they always do

  npm run soak -- --minutes 60 --seed 42 --json report.json
  npm run soak -- --minutes 2 --queue postgres --keep

Exit code 0: everything is as it must be; 1: something is not; 2: the flags are wrong.`;

/** Null: only the usage is asked for. Throws if a flag is unknown or its value is none. */
export function readOptions(args: readonly string[]): Options | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      queue: { type: 'string', default: redisIsInstalled() ? 'redis' : 'postgres' },
      'fault-seconds': { type: 'string', default: '7' },
      'no-kills': { type: 'boolean', default: false },
      'forget-replays': { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return null;
  const { queue } = values;
  if (queue !== 'redis' && queue !== 'postgres') throw new Error('--queue is redis or postgres');
  return {
    minutes: positive('--minutes', values.minutes),
    seed: positive('--seed', values.seed),
    queue,
    kills: !values['no-kills'],
    forgetReplays: values['forget-replays'],
    faultSeconds: positive('--fault-seconds', values['fault-seconds']),
    keep: values.keep,
    json: values.json ?? null,
  };
}

function positive(flag: string, text: string): number {
  const number = Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new Error(`${flag} wants a number above 0, not ${JSON.stringify(text)}`);
}

function redisIsInstalled(): boolean {
  return spawnSync('redis-server', ['--version']).status === 0;
}
