import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';

const maxFields = 1_000;
const maxFieldBytes = 64 * 1024;

/**
 * Leaves bodies on the wire for the handler to stream, whatever their type: nothing is buffered, and a body that no handler asks for
 * (the `{}` that some clients send) is not looked at. A route that wants a parsed body registers its parser in a scope of its own.
 */
export function addRawBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/** Prepares a scope of routes that take forms. The plugin watches the response of every request in its scope. */
export function addForms(scope: FastifyInstance): void {
  scope.register(multipart, {
    // The limits of all uploads bound the size. A second file is let in to be refused with a reason.
    limits: { fileSize: Number.POSITIVE_INFINITY, files: 2, fields: maxFields, fieldSize: maxFieldBytes },
    throwFileSizeLimit: false,
    isPartAFile: (name, _type, filename) => name === 'file' || filename !== undefined,
  });
}

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * With `Expect: 100-continue` the sender holds the body back until it is asked for it. Node would ask at once. Here it is asked once
 * key, options and headers are found good, so that a refused upload of gigabytes costs a few hundred bytes.
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

/** Node reads past a body as short as this, which keeps the connection. */
const shortBody = 64 * 1024;
/** The most that is read and thrown away while the sender finds out that it has its answer. */
const lingerBytes = 1024 * 1024 * 1024;
const lingerMs = 5_000;

/**
 * An answer may be ready while the request is still being sent (401, 413, 415, 408). Closing the connection at once would reset it, and
 * many clients would see the reset and never the answer. So the answer is sent in full, with `Connection: close`, and the end of the
 * response, which closes, waits until the sender has stopped.
 */
export function addLingeringClose(app: FastifyInstance): void {
  app.addHook('onSend', ({ raw }, reply, payload, done) => {
    if (!isPending(raw)) {
      done(null, payload);
      return;
    }
    reply.header('connection', 'close');
    // A sender that waits for `100 Continue` has sent nothing to read.
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
  // Node reads past a body only if nobody has begun to read it.
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
    // The reader has given up, but nothing flows as long as it listens.
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
