import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { batchItems, paths, type RecordKind, recordBody, users } from './records.ts';

/** An order says what to send, and for how long. */
export interface Order {
  readonly url: string;
  readonly apiKey: string;
  readonly kind: RecordKind;
  /** Told apart in the table from every other run. */
  readonly run: string;
  readonly connections: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** Rate and latencies are of the measured part; the other counts of the warm-up too. Of requests, also where one is a batch. */
export interface Posted {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly sent: number;
  /** Answered 202; a batch: 200. */
  readonly accepted: number;
  /** Answered otherwise, or not at all. */
  readonly failed: number;
  /** Failures by status or message. */
  readonly failures: Readonly<Record<string, number>>;
  /** Some connection had sent all its records and began again. */
  readonly wrapped: boolean;
}

/** In a process of its own, so that sender and server do not share an event loop. */
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
  let [accepted, opened, wrapped] = [0, 0, false];
  let [measuredFrom, lastAt] = [Number.POSITIVE_INFINITY, 0];
  const share = Math.ceil(users / connections / (order.kind === 'batch' ? batchItems : 1));
  const success = order.kind === 'batch' ? 200 : 202;
  const options: autocannon.Options = {
    url: order.url,
    connections,
    duration: warmUpSeconds + seconds,
    setupClient(client) {
      // Built before the start: while it measures, the sender should do nothing but send.
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
    // At the end each connection may have one under way; what else is without an answer lost its connection.
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
