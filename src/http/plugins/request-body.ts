import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';

const maxFields = 1_000;
const maxFieldBytes = 64 * 1024;

/**
 * Leaves bodies unread, so that handlers can stream them. Bodies that a route does not need, such
 * as the `{}` that some clients send, are ignored.
 */
export function addRawBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/**
 * Adds a parser for forms. Call this function with a separate scope, because the plugin watches
 * every response in its scope.
 */
export function addForms(scope: FastifyInstance): void {
  scope.register(multipart, {
    // Uploads are limited elsewhere. A second file is accepted, so that the handler can refuse it
    // with a reason.
    limits: { fileSize: Number.POSITIVE_INFINITY, files: 2, fields: maxFields, fieldSize: maxFieldBytes },
    throwFileSizeLimit: false,
    isPartAFile: (name, _type, filename) => name === 'file' || filename !== undefined,
  });
}

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * With `Expect: 100-continue`, the body is requested after the checks of key, options and headers.
 * Thus, a refused upload costs a few hundred bytes. By default, Node would request the body at
 * once.
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

/** Node itself reads an unread body up to this size, to keep the connection. */
const shortBody = 64 * 1024;
/** Bytes to discard while waiting for the client to notice the response. */
const lingerBytes = 1024 * 1024 * 1024;
const lingerMs = 5_000;

/**
 * Sends a response that is ready before its whole request has arrived, then waits until the client
 * stops sending. An immediate close would reset the connection, and many clients would lose the
 * response.
 */
export function addLingeringClose(app: FastifyInstance): void {
  app.addHook('onSend', ({ raw }, reply, payload, done) => {
    if (!isPending(raw)) {
      done(null, payload);
      return;
    }
    reply.header('connection', 'close');
    // A client that awaits `100 Continue` has not sent any part of the body.
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
  // Node does not discard the rest of a body that is being read.
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
    // An earlier reader would keep the body from being discarded.
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
