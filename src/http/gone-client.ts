import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type InputError, Interrupted, inputError } from '../base/errors.ts';

/*
 * Clients may leave before they are answered. Fastify goes on with a request whose client left while its key was looked up, and a
 * connection that has closed emits no event: so each function here looks before it listens.
 */

/** Aborts when the connection ends before the whole body has come. */
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
 * Calls `fn` once, when the client has its answer or is gone; at once if it is gone already. Listening to the response alone is not
 * enough: a response that waits behind another on its connection never closes when the connection does.
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

/** The refusal that ends the work for a client that left. Nobody reads it, but it must not count as a failure of ours. */
export function wentAway(): InputError {
  return inputError('upload_too_slow', 'The client went away before it was answered');
}
