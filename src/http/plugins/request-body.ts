import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';

const maxFields = 1_000;
const maxFieldBytes = 64 * 1024;

/**
 * Leaves all bodies unread for handlers to stream. Ignores those that no handler needs, such as the
 * `{}` of some clients. A route with a parsed body registers a parser in its own scope.
 */
export function addRawBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/** Adds forms to a scope. The plugin watches every response in it. */
export function addForms(scope: FastifyInstance): void {
  scope.register(multipart, {
    // Upload limits bound the size. A second file is read so that it is refused with a reason.
    limits: { fileSize: Number.POSITIVE_INFINITY, files: 2, fields: maxFields, fieldSize: maxFieldBytes },
    throwFileSizeLimit: false,
    isPartAFile: (name, _type, filename) => name === 'file' || filename !== undefined,
  });
}

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * Asks for the body of `Expect: 100-continue` after checking key, options and headers, so that a
 * refused upload costs a few hundred bytes. Node would ask at once.
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

/** Node reads past shorter bodies, which keeps the connection. */
const shortBody = 64 * 1024;
/** Bytes discarded until the sender notices its answer. */
const lingerBytes = 1024 * 1024 * 1024;
const lingerMs = 5_000;

/**
 * Answers that precede the end of the request (401, 413, 415, 408) are sent in full with
 * `Connection: close`, and closing waits for the sender to stop. An immediate close would reset the
 * connection, and many clients would miss the answer.
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
  // Node skips only bodies that nobody has begun to read.
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
    // A reader that gave up still listens, which stops the flow.
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
