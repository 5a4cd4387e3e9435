import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type InputError, Interrupted, inputError } from '../base/errors.ts';

// Clients may leave during the key look-up. Fastify continues such a request, and its closed
// connection emits no more events. So these functions check before they listen.

/** Returns a signal that aborts if the connection ends before the body. */
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
 * Calls `fn` when the client has its answer or has left. Also watches the socket, since a response
 * in a queue does not close with its connection.
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

/** Error of work for a client that left. Does not count as our failure. */
export function wentAway(): InputError {
  return inputError('upload_too_slow', 'The client went away before it was answered');
}
