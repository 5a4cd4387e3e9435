import type { IncomingMessage } from 'node:http';
import { Interrupted } from '../../domain/errors.ts';

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
