import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type InputError, Interrupted, inputError } from '../domain/errors.ts';

/*
 * Clients that leave before they are answered. Fastify goes on with the request of one that left while its key was looked up, and what
 * has closed by then says so to nobody: each of these looks before it listens.
 */

/** Aborts when the connection ends before the whole body has come: what was sent so far is worth nothing. */
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
 * Calls `fn` once, when the client has its answer or is gone; at once if it is gone already. The response alone would not do: one that
 * waits behind another on its connection never closes, when that does.
 */
export function onceClosed({ raw: response, request }: FastifyReply, fn: () => void): void {
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

/** Nobody reads this; but it is no failure of ours, and must not be counted as one. */
export function wentAway(): InputError {
  return inputError('upload_too_slow', 'The client went away before it was answered');
}
