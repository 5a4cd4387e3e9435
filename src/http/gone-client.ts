import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type InputError, Interrupted, inputError } from '../base/errors.ts';

// Fastify continues a request whose client left during the key look-up, and a closed connection
// emits no event. So each function here checks before it listens.

/** Aborts if the connection ends before the whole body. */
export function watchClient(raw: IncomingMessage): AbortSignal {
  const gone = new AbortController();
  const onClose = (): void => {
    if (!raw.complete) gone.abort(new Interrupted('the client went away while it was sending'));
  };
  if (raw.destroyed) onClose();
  else raw.once('close', onClose);
  return gone.signal;
}

/**
 * Calls `fn` once the client has its answer or is gone. A response that waits behind another does
 * not close with its connection, so the socket is watched too.
 */
function onceClosed({ raw: response, request }: FastifyReply, fn: () => void): void {
  const { socket } = request.raw;
  if (socket.destroyed) {
    fn();
    return;
  }
  const end = (): void => {
    response.off('close', end);
    socket.off('close', end);
    fn();
  };
  response.on('close', end);
  socket.on('close', end);
}

export function abortWhenClosed(reply: FastifyReply): AbortController {
  const gone = new AbortController();
  onceClosed(reply, () => gone.abort(wentAway()));
  return gone;
}

/** Ends the work for a client that left, without counting as our failure. */
export function wentAway(): InputError {
  return inputError('upload_too_slow', 'The client went away before it was answered');
}
