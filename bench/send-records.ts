import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Order, type Posted, postRecords } from './post-records.ts';
import { paths, recordBody, users } from './records.ts';

/** wrk uses less processor time than a sender in Node. */
export const hasWrk = isInstalled();

/** Each record has a different user. wrk has one thread. */
export function sendRecords(order: Order): Promise<Posted> {
  return hasWrk && order.kind !== 'batch' ? sendByWrk(order) : postRecords(order);
}

function isInstalled(): boolean {
  try {
    // `wrk -v` prints the version and exits with code 1, so only ENOENT means that wrk is missing.
    execFileSync('wrk', ['-v'], { stdio: 'ignore' });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

async function sendByWrk(order: Order): Promise<Posted> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-wrk-'));
  try {
    const bodies = join(folder, 'bodies');
    await writeFile(
      bodies,
      Array.from({ length: users }, (_, n) => recordBody(order.kind, order.run, n)).join('\n'),
    );
    const script = join(folder, 'records.lua');
    await writeFile(script, scriptOf(order, bodies));
    const warmUp = await run(order, script, order.warmUpSeconds);
    const measured = await run(order, script, order.seconds);
    return {
      ...measured,
      sent: warmUp.sent + measured.sent,
      accepted: warmUp.accepted + measured.accepted,
      failed: warmUp.failed + measured.failed,
      wrapped: true,
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/**
 * A Lua script for wrk. It creates the requests before the measurement, and prints its counts as
 * JSON in the last line.
 */
function scriptOf({ kind, apiKey }: Order, bodies: string): string {
  const headers = `{["authorization"] = "Token ${apiKey}", ["content-type"] = "application/json"}`;
  return `
local requests, at, others = {}, 0, 0
function init(args)
  for body in io.lines(${JSON.stringify(bodies)}) do
    requests[#requests + 1] = wrk.format("POST", ${JSON.stringify(paths[kind])}, ${headers}, body)
  end
end
function request()
  at = at % #requests + 1
  return requests[at]
end
function done(summary, latency, requests)
  local lost = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format(
    '{"answered":%d,"refused":%d,"lost":%d,"us":%d,"p50":%d,"p99":%d,"max":%d}\\n',
    summary.requests, summary.errors.status, lost, summary.duration,
    latency:percentile(50), latency:percentile(99), latency.max))
end
`;
}

interface Summary {
  readonly answered: number;
  readonly refused: number;
  readonly lost: number;
  readonly us: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

async function run({ url, connections }: Order, script: string, seconds: number): Promise<Posted> {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, url];
  const { stdout } = await promisify(execFile)('wrk', args);
  const { answered, refused, lost, us, p50, p99, max } = JSON.parse(
    stdout.trim().split('\n').at(-1) ?? '',
  ) as Summary;
  const accepted = answered - refused;
  return {
    perSecond: answered / (us / 1_000_000),
    p50: p50 / 1_000,
    p99: p99 / 1_000,
    max: max / 1_000,
    // At the end, each connection may have one request in progress.
    sent: answered + connections,
    accepted,
    failed: refused + lost,
    failures: { refused, lost },
    wrapped: answered > users,
  };
}
