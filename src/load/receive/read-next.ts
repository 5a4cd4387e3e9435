import { inputError } from '../../domain/errors.ts';

/**
 * The source's next item, or a rejection if it takes longer than `stallMs` or the signal aborts. One promise
 * per call, with its listeners removed again: racing against a promise that lives as long as the upload would
 * keep a reaction for every item.
 */
export function readNext<T>(
  source: AsyncIterator<T>,
  stallMs: number,
  signal: AbortSignal,
): Promise<IteratorResult<T, unknown>> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };
    const fail = (error: unknown) => {
      stop();
      reject(error);
    };
    const abort = () => fail(signal.reason);
    const timer = setTimeout(() => fail(stalled(stallMs)), stallMs);
    signal.addEventListener('abort', abort);
    source.next().then((result) => {
      stop();
      resolve(result);
    }, fail);
  });
}

function stalled(stallMs: number): Error {
  return inputError('upload_too_slow', 'The upload has stalled', `nothing came for ${stallMs} ms`);
}
