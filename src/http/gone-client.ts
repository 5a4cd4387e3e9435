import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type InputError, Interrupted, inputError } from '../base/errors.ts';

// A client may disconnect during the key look-up. Fastify continues such a request, and its closed
// connection emits no more events. Therefore, these functions first check whether the connection is
// closed, and then listen.

/** Returns a signal that is aborted if the connection ends before the whole body has arrived. */
export function watchClient(raw: IncomingMessage): AbortSignal {
  const controller = new AbortController();
  const onClose = (): void => {
    if (!raw.complete) controller.abort(new Interrupted('the client went away while it was sending'));
  };
  if (raw.destroyed) onClose();
  else raw.once('close', onClose);
  return controller.signal;
}

/**
 * Calls `fn` when the client has received its response or has disconnected. Also watches the
 * socket, because a response that waits behind other responses gets no event when the connection
 * closes.
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
  const controller = new AbortController();
  onceClosed(reply, () => controller.abort(wentAway()));
  return controller;
}

/**
 * Error for a client that disconnected before its response. It does not count as a failure of the
 * service.
 */
export function wentAway(): InputError {
  return inputError('upload_too_slow', 'The client went away before it was answered');
}
