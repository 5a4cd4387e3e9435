import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { awaitsContinue } from './request-body.ts';

/** A body as short as this is left for Node to read past, which keeps the connection. */
const shortBody = 64 * 1024;
/** What is read and thrown away, at most, while the sender finds out that it has its answer. */
const lingerBytes = 1024 * 1024 * 1024;
const lingerMs = 5_000;

/**
 * An answer that is ready while the request is still being sent (401, 413, 415, 408). Closing the connection at once
 * would reset it, and many a client would see the reset and never the answer. So the answer is sent in full, with
 * `Connection: close`, and the end of the response, which closes, waits until the sender has stopped.
 */
export function addLingeringClose(app: FastifyInstance): void {
  app.addHook('onSend', ({ raw }, reply, payload, done) => {
    if (!isPending(raw)) {
      done(null, payload);
      return;
    }
    reply.header('connection', 'close');
    // A sender that waits for `100 Continue` has sent nothing there would be to read.
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
  // Begun and left off: Node reads past a body only if nobody has touched it.
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
    // Whoever was reading has given up; as long as it listens, nothing flows.
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
