// Limits on requests: under overload, per key, and on logins.

import type { Socket } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';
import { inputError } from '../../base/errors.ts';
import { DELAY_RESOLUTION_MS } from '../../base/limits.ts';
import { startWatch } from '../../base/timers.ts';
import type { System } from '../../context.ts';
import { type Explained, sendErrors } from './errors.ts';

/** Maximum number of calls with a browser key, per address and window. */
const MAX_BROWSER_CALLS = 300;
const BROWSER_WINDOW_MS = 10_000;
/** Number of records in a batch that together count as one call. */
const RECORDS_OF_CALL = 100;

export interface ServerState {
  closing: boolean;
  isBeyond?: (socket: Socket) => boolean;
  /**
   * Closes a connection after its pending responses. Returns false if no response is pending, or if
   * a request has not fully arrived.
   */
  endWithAnswers?: (socket: Socket) => boolean;
}

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Returns the refusal if the key made too many calls. `records` is the size of a batch from a
     * browser, already counted as one call. Each further hundred records are another call.
     */
    countCall: (request: FastifyRequest, reply: FastifyReply, records?: number | null) => Error | undefined;
  }
  interface FastifyContextConfig {
    /**
     * Serves the route even under overload, because monitoring must see why requests are refused.
     */
    alwaysServed?: true;
  }
}

/**
 * Above this share of the heap, a process spends its time on garbage collection until it runs out
 * of memory.
 */
const heapShare = 0.9;

/** A new process loads and compiles code. Delays during this time are ignored. */
const startMs = 2_000;

const measureMs = 1_000;

const overloaded: Explained = {
  status: 503,
  problems: [{ code: 'unavailable', message: 'The service is overloaded; try again later', details: '' }],
};

/** Refuses requests while the event loop is delayed or the heap is nearly full. */
export function addLoadShedding(
  app: FastifyInstance,
  { config, log }: Pick<System, 'config' | 'log'>,
  heapLimit = getHeapStatistics().heap_size_limit,
  state: Pick<ServerState, 'isBeyond'> = {},
): void {
  const maxDelay = config.maxEventLoopDelayMs === 0 ? Number.POSITIVE_INFINITY : config.maxEventLoopDelayMs;
  const maxHeap = heapLimit * heapShare;
  let isShedding = false;
  let judgedFrom = Number.POSITIVE_INFINITY;
  app.addHook('onListen', async () => {
    judgedFrom = performance.now() + startMs;
  });
  const delays = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  delays.enable();
  let eventLoopDelay = 0;
  let heapUsed = 0;
  const measuring = startWatch(measureMs, () => {
    const { mean } = delays;
    // The mean is NaN if the event loop did not run at all.
    eventLoopDelay = Number.isNaN(mean) ? Number.POSITIVE_INFINITY : mean / 1e6 - DELAY_RESOLUTION_MS;
    heapUsed = process.memoryUsage().heapUsed;
    delays.reset();
  });
  app.addHook('onClose', async () => {
    await measuring.stop();
    delays.disable();
  });
  app.addHook('onRequest', (request, reply, done) => {
    const lags = eventLoopDelay > maxDelay && performance.now() > judgedFrom;
    const overload = lags || heapUsed > maxHeap;
    if (overload !== isShedding) {
      isShedding = overload;
      const fields = { event_loop_delay_ms: Math.round(eventLoopDelay), heap_used_bytes: heapUsed };
      if (overload) log.warn(fields, 'overloaded: requests are refused');
      else log.info(fields, 'no longer overloaded');
    }
    const isRefused = overload || state.isBeyond?.(request.raw.socket) === true;
    if (isRefused && request.routeOptions.config.alwaysServed !== true) sendErrors(reply, overloaded);
    else done();
  });
}

/** If there are more keys than this, the one with the oldest window is dropped. */
const maxKeys = 10_000;

/**
 * Limits the calls of each key. For a browser key, also limits the calls from each address. Each
 * process counts separately, because Redis would cost a query per call. No existing plugin is used,
 * because those miscount simultaneous requests.
 */
export function addRateLimit(app: FastifyInstance, { config }: System): void {
  const { count: max, windowMs } = config.rateLimit ?? { count: 0, windowMs: 0 };
  const windows = new Windows(windowMs, maxKeys);
  const pages = new Windows(BROWSER_WINDOW_MS, maxKeys);
  const count: FastifyInstance['countCall'] = ({ caller, ip }: FastifyRequest, reply, records = null) => {
    if (caller === null) return undefined;
    if (caller.scopes.includes('browser')) {
      const calls = records === null ? 1 : Math.max(0, Math.ceil(records / RECORDS_OF_CALL) - 1);
      const { count, leftMs } = pages.add(`${caller.keyId} ${networkOf(ip)}`, calls);
      return count <= MAX_BROWSER_CALLS
        ? undefined
        : tooMany(reply, leftMs, 'This address', MAX_BROWSER_CALLS, BROWSER_WINDOW_MS);
    }
    if (max === 0 || records !== null) return undefined;
    const { count, leftMs } = windows.add(caller.keyId);
    reply
      .header('ratelimit-limit', String(max))
      .header('ratelimit-remaining', String(Math.max(0, max - count)))
      .header('ratelimit-reset', secondsOf(leftMs));
    return count <= max ? undefined : tooMany(reply, leftMs, 'This key', max, windowMs);
  };
  app.decorate('countCall', count);
  app.addHook('onRequest', (request, reply, done) => done(count(request, reply)));
}

/** Rounds the milliseconds, because they may exceed the window by a fraction. */
function secondsOf(leftMs: number): string {
  return String(Math.max(1, Math.ceil(Math.round(leftMs) / 1_000)));
}

function tooMany(reply: FastifyReply, leftMs: number, who: string, max: number, windowMs: number): Error {
  reply.header('retry-after', secondsOf(leftMs));
  const details = `${max} requests in ${windowMs} ms`;
  return inputError('rate_limited', `${who} makes too many requests; try again later`, details);
}

export class Windows {
  readonly #byKey = new Map<string, { count: number; readonly endsAt: number }>();
  readonly #windowMs: number;
  readonly #maxKeys: number;
  readonly #now: () => number;

  constructor(windowMs: number, maxKeys: number, now: () => number = () => performance.now()) {
    this.#windowMs = windowMs;
    this.#maxKeys = maxKeys;
    this.#now = now;
  }

  /** Adds `count` to the current window of a key. `leftMs` is the time until the window ends. */
  add(key: string, count = 1): { readonly count: number; readonly leftMs: number } {
    const now = this.#now();
    const current = this.#byKey.get(key);
    if (current !== undefined && current.endsAt > now) {
      current.count += count;
      return { count: current.count, leftMs: current.endsAt - now };
    }
    this.#byKey.delete(key);
    for (const oldest of this.#byKey.keys()) {
      if (this.#byKey.size < this.#maxKeys) break;
      this.#byKey.delete(oldest);
    }
    this.#byKey.set(key, { count, endsAt: now + this.#windowMs });
    return { count, leftMs: this.#windowMs };
  }
}

/** Maximum number of failed logins, per minute and address. */
const mostFailures = 10;

export class FailedLogins {
  readonly #windows: Windows;

  constructor(now?: () => number) {
    this.#windows = new Windows(60_000, 100_000, now);
  }

  /** Returns the seconds that the address must wait before another login. */
  wait(address: string): number {
    const { count, leftMs } = this.#windows.add(networkOf(address), 0);
    return count < mostFailures ? 0 : Math.ceil(leftMs / 1_000);
  }

  failed(address: string): void {
    this.#windows.add(networkOf(address));
  }
}

const networkParts = 4;

/** The /64 network of an IPv6 address. Any other text is returned unchanged. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, networkParts).join(':') : parsed.toString();
}
