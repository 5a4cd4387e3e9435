import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';

const maxFields = 1_000;
const maxFieldBytes = 64 * 1024;

/**
 * Leaves bodies unread, so that handlers can stream them. Bodies that a route does not need, such
 * as the `{}` that some clients send, are ignored. A route whose body is parsed registers a parser
 * in its own scope.
 */
export function addRawBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/**
 * Adds forms to a Fastify scope. It must be a separate scope, because the plugin watches every
 * response in its scope.
 */
export function addForms(scope: FastifyInstance): void {
  scope.register(multipart, {
    // The size of uploads is limited elsewhere. The plugin accepts a second file, so that the
    // handler can refuse this file with a reason.
    limits: { fileSize: Number.POSITIVE_INFINITY, files: 2, fields: maxFields, fieldSize: maxFieldBytes },
    throwFileSizeLimit: false,
    isPartAFile: (name, _type, filename) => name === 'file' || filename !== undefined,
  });
}

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * If a request has `Expect: 100-continue`, its body is requested only after the key, options and
 * headers have been checked. Therefore, a refused upload costs only a few hundred bytes. Node
 * itself would request the body immediately.
 */
export function addExpectContinue(app: FastifyInstance): void {
  app.server.on('checkContinue', (raw: IncomingMessage, response: ServerResponse) => {
    waiting.set(raw, response);
    app.server.emit('request', raw, response);
  });
}

function awaitsContinue(raw: IncomingMessage): boolean {
  return waiting.has(raw);
}

export function askForBody(raw: IncomingMessage): void {
  waiting.get(raw)?.writeContinue();
  waiting.delete(raw);
}

/** Maximum size of an unread body that Node itself reads in order to keep the connection. */
const shortBody = 64 * 1024;
/** Maximum number of bytes to discard while waiting for the client to notice the response. */
const lingerBytes = 1024 * 1024 * 1024;
const lingerMs = 5_000;

/**
 * If a response is ready before the request has fully arrived, sends the whole response with
 * `Connection: close`, and waits until the client stops sending. An immediate close would reset the
 * connection, and many clients would lose the response.
 */
export function addLingeringClose(app: FastifyInstance): void {
  app.addHook('onSend', ({ raw }, reply, payload, done) => {
    if (!isPending(raw)) {
      done(null, payload);
      return;
    }
    reply.header('connection', 'close');
    // A client that waits for `100 Continue` has not sent any part of the body.
    if (typeof payload !== 'string' || awaitsContinue(raw)) {
      done(null, payload);
      return;
    }
    reply.header('content-length', Buffer.byteLength(payload));
    done(null, Readable.from(answerThenLinger(payload, raw), { objectMode: false }));
  });
}

function isPending(raw: IncomingMessage): boolean {
  if (raw.destroyed || raw.readableEnded) return false;
  // Once reading the body has begun, Node does not discard the rest.
  if (raw.readableDidRead) return true;
  if (raw.complete) return false;
  if (raw.headers['transfer-encoding'] !== undefined || awaitsContinue(raw)) return true;
  return Number(raw.headers['content-length'] ?? 0) > shortBody;
}

async function* answerThenLinger(payload: string, raw: IncomingMessage): AsyncGenerator<Buffer> {
  yield Buffer.from(payload);
  await linger(raw);
}

function linger(raw: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    const done = (): void => {
      clearTimeout(timer);
      raw.pause();
      resolve();
    };
    const timer = setTimeout(done, lingerMs);
    // If an earlier reader still listened, the body would not be discarded.
    raw.unpipe();
    raw.removeAllListeners('readable');
    raw.on('error', done).on('end', done).on('close', done);
    raw.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > lingerBytes) done();
    });
    raw.resume();
    if (raw.destroyed || raw.readableEnded) done();
  });
}
