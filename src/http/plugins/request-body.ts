import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';

const maxFields = 1_000;
const maxFieldBytes = 64 * 1024;

/**
 * Leaves bodies unread for handlers to stream. Ignores unneeded ones, such as the `{}` of some
 * clients. A route with a parsed body registers a parser in its own scope.
 */
export function addRawBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/** Adds forms to a scope. The plugin watches every response of the scope. */
export function addForms(scope: FastifyInstance): void {
  scope.register(multipart, {
    // Upload limits bound the size. A second file is read to be refused with a reason.
    limits: { fileSize: Number.POSITIVE_INFINITY, files: 2, fields: maxFields, fieldSize: maxFieldBytes },
    throwFileSizeLimit: false,
    isPartAFile: (name, _type, filename) => name === 'file' || filename !== undefined,
  });
}

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * Requests the body of `Expect: 100-continue` only after key, options and headers are checked. A
 * refused upload then costs a few hundred bytes. Node would request it at once.
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

/** Size up to which Node reads an unread body itself and keeps the connection. */
const shortBody = 64 * 1024;
/** Most bytes to discard until the sender notices its answer. */
const lingerBytes = 1024 * 1024 * 1024;
const lingerMs = 5_000;

/**
 * Sends answers that precede the end of the request in full, with `Connection: close`, and awaits
 * the sender's stop. An immediate close resets the connection, and many clients lose the answer.
 */
export function addLingeringClose(app: FastifyInstance): void {
  app.addHook('onSend', ({ raw }, reply, payload, done) => {
    if (!isPending(raw)) {
      done(null, payload);
      return;
    }
    reply.header('connection', 'close');
    // A sender that awaits `100 Continue` has sent nothing.
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
  // Node discards only bodies that nobody has begun to read.
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
    // A former reader still listens, which stops the flow.
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
