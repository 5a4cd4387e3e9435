import type { Socket } from 'node:net';
import { getHeapStatistics } from 'node:v8';
import underPressure from '@fastify/under-pressure';
import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { type Explained, sendErrors } from './errors.ts';

export interface ServerState {
  closing: boolean;
  isBeyond?: (socket: Socket) => boolean;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answers however loaded the process is: those who watch it must see why it refuses others. */
    alwaysServed?: true;
  }
}

/** The share of the heap beyond which the process spends its time on collecting garbage, and then ends. */
const heapShare = 0.9;

/** A process that has just started has loaded and compiled its code: the delay of that says nothing about the load. */
const startMs = 2_000;

const overloaded: Explained = {
  status: 503,
  problems: [{ code: 'unavailable', message: 'The service is overloaded; try again later', details: '' }],
};

/**
 * Refuses requests while the event loop lags or the heap is nearly full, so that those under way come to an end. The
 * plugin measures, once a second; its own hook would run after the key was looked up, and be logged for every request.
 */
export function addLoadShedding(
  app: FastifyInstance,
  { config, log }: Pick<System, 'config' | 'log'>,
  heapLimit = getHeapStatistics().heap_size_limit,
  state: Pick<ServerState, 'isBeyond'> = {},
): void {
  const maxDelay = config.maxEventLoopDelayMs === 0 ? Number.POSITIVE_INFINITY : config.maxEventLoopDelayMs;
  const maxHeap = heapLimit * heapShare;
  let shedding = false;
  let judgedFrom = Number.POSITIVE_INFINITY;
  app.addHook('onListen', async () => {
    judgedFrom = performance.now() + startMs;
  });
  app.register(underPressure);
  app.addHook('onRequest', (request, reply, done) => {
    const { eventLoopDelay, heapUsed } = app.memoryUsage();
    const lags = eventLoopDelay > maxDelay && performance.now() > judgedFrom;
    const overload = lags || heapUsed > maxHeap;
    if (overload !== shedding) {
      shedding = overload;
      const fields = { event_loop_delay_ms: Math.round(eventLoopDelay), heap_used_bytes: heapUsed };
      if (overload) log.warn(fields, 'overloaded: requests are refused');
      else log.info(fields, 'no longer overloaded');
    }
    const isRefused = overload || state.isBeyond?.(request.raw.socket) === true;
    if (isRefused && request.routeOptions.config.alwaysServed !== true) sendErrors(reply, overloaded);
    else done();
  });
}
