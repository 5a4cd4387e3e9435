import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { batchItems, paths, type RecordKind, recordBody, users } from './records.ts';

export interface Order {
  readonly url: string;
  readonly apiKey: string;
  readonly kind: RecordKind;
  /** Every record of the run contains this name. */
  readonly run: string;
  readonly connections: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/**
 * The result of a run. A batch counts as one request. The counts include the warm-up, but the rate
 * and the latencies exclude it.
 */
export interface Posted {
  readonly perSecond: number;
  /** In milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly sent: number;
  /** Number of responses with the status 202, or 200 for a batch. */
  readonly accepted: number;
  /** Number of requests with any other status, or without a response. */
  readonly failed: number;
  /** Numbers of failures, by status or error message. */
  readonly failures: Readonly<Record<string, number>>;
  /** True if a connection ran out of records and sent its first records again. */
  readonly wrapped: boolean;
}

/** Sends from a separate process, so that sender and server do not share an event loop. */
export async function postRecords(order: Order): Promise<Posted> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(order)]);
  return new Promise((resolve, reject) => {
    child.once('message', (posted) => resolve(posted as Posted));
    child.once('exit', (code) => reject(new Error(`the sender ended with ${code}`)));
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.send?.(await post(JSON.parse(process.argv[2] ?? '') as Order), () => process.exit());
}

async function post(order: Order): Promise<Posted> {
  const { connections, warmUpSeconds, seconds } = order;
  const latencies: number[] = [];
  const failures: Record<string, number> = {};
  const fail = (how: string | number): void => {
    failures[how] = (failures[how] ?? 0) + 1;
  };
  let accepted = 0;
  let opened = 0;
  let wrapped = false;
  let measuredFrom = Number.POSITIVE_INFINITY;
  let lastAt = 0;
  const share = Math.ceil(users / connections / (order.kind === 'batch' ? batchItems : 1));
  const success = order.kind === 'batch' ? 200 : 202;
  const options: autocannon.Options = {
    url: order.url,
    connections,
    duration: warmUpSeconds + seconds,
    setupClient(client) {
      // The requests are created in advance, so that only sending is measured.
      client.setRequests(requests(order, opened++ * share, share));
      let answers = 0;
      client.on('response', (status, _bytes, milliseconds) => {
        if (status === success) accepted++;
        else fail(status);
        wrapped ||= ++answers > share;
        const now = performance.now();
        if (now < measuredFrom) return;
        lastAt = now;
        latencies.push(milliseconds);
      });
    },
  };
  const { sent } = await new Promise<autocannon.Result['requests']>((resolve, reject) => {
    const running = autocannon(options, (error: Error | null, result) => {
      if (error === null) resolve(result.requests);
      else reject(error);
    });
    running.on('start', () => {
      measuredFrom = performance.now() + warmUpSeconds * 1_000;
    });
    running.on('reqError', (error: Error) => fail(error.message));
  });
  latencies.sort((a, b) => a - b);
  const at = (part: number): number => latencies[Math.floor((latencies.length - 1) * part)] ?? Number.NaN;
  return {
    perSecond: latencies.length / ((lastAt - measuredFrom) / 1_000),
    p50: at(0.5),
    p99: at(0.99),
    max: at(1),
    sent,
    accepted,
    // At the end, each connection may still wait for the response to one request. All further
    // requests without a response have failed.
    failed: Math.max(sum(Object.values(failures)), sent - accepted - connections),
    failures,
    wrapped,
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function requests({ kind, run, apiKey }: Order, from: number, count: number): autocannon.Request[] {
  return Array.from({ length: count }, (_, at) => ({
    method: 'POST',
    path: paths[kind],
    headers: { authorization: `Token ${apiKey}`, 'content-type': 'application/json' },
    body: recordBody(kind, run, from + at),
  }));
}
