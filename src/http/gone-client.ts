import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type InputError, Interrupted, inputError } from '../base/errors.ts';

// If a client leaves during the key look-up, Fastify continues the request, and the closed
// connection emits no more events. Therefore, these functions first check whether the connection is
// closed.

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
 * Aborts when the client disconnects. Also watches the socket, because a response that waits behind
 * other responses gets no event when the connection closes.
 */
export function abortWhenClosed({ raw: response, request }: FastifyReply): AbortController {
  const controller = new AbortController();
  const { socket } = request.raw;
  const end = (): void => {
    response.off('close', end);
    socket.off('close', end);
    controller.abort(wentAway());
  };
  if (socket.destroyed) end();
  else {
    response.on('close', end);
    socket.on('close', end);
  }
  return controller;
}

/** A client that left does not count as a failure of the service. */
export function wentAway(): InputError {
  return inputError('upload_too_slow', 'The client went away before it was answered');
}
