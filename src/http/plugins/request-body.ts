import type { IncomingMessage, ServerResponse } from 'node:http';
import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';

/** Fields (options) of a form, and bytes of one: a `map` of many columns fits. */
const maxFields = 1_000;
const maxFieldBytes = 64 * 1024;

/**
 * Bodies are left on the wire for the handler to stream, whatever their type says: nothing is buffered, and what a
 * handler does not ask for (the `{}` that some clients send) is not looked at. A route that wants a parsed body
 * registers its parser in a scope of its own.
 */
export function addRawBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/** In a scope of the routes that take forms: the plugin watches the response of every request that it is told of. */
export function addForms(scope: FastifyInstance): void {
  scope.register(multipart, {
    // Size is the business of the limits that all uploads have. A second file is let in to be refused with a reason.
    limits: { fileSize: Number.POSITIVE_INFINITY, files: 2, fields: maxFields, fieldSize: maxFieldBytes },
    throwFileSizeLimit: false,
    isPartAFile: (name, _type, filename) => name === 'file' || filename !== undefined,
  });
}

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
