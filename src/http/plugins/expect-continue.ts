import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * `Expect: 100-continue`: the sender holds the body back until it is asked for it. Node would ask at once; here it is asked
 * when key, options and headers are found good, so that a refused upload of gigabytes costs a few hundred bytes.
 */
export function addExpectContinue(app: FastifyInstance): void {
  app.server.on('checkContinue', (raw: IncomingMessage, response: ServerResponse) => {
    waiting.set(raw, response);
    app.server.emit('request', raw, response);
  });
}

/** Whether the sender holds the body back still. */
export function awaitsContinue(raw: IncomingMessage): boolean {
  return waiting.has(raw);
}

/** Asks for the body, if the sender waits to be asked. */
export function askForBody(raw: IncomingMessage): void {
  waiting.get(raw)?.writeContinue();
  waiting.delete(raw);
}
