import { signal } from '@preact/signals';
import { growing, retry } from '../../../base/retry.ts';
import { apiHref, withQuery } from '../../../console/client/lib/address.ts';
import { ApiError, problemOf, refusal, session, unreachable } from '../../../console/client/lib/api.ts';
import { clockOf } from '../../../console/client/lib/outage.ts';
import type { Inspection } from '../api.ts';

/*
 * Files that this page sends. Sending continues while the user visits other screens, and resumes
 * after a lost connection.
 */

/** The server stores the file for a day. */
export interface Sending {
  readonly key: string;
  readonly name: string;
  readonly size: number;
  /** Number of bytes that the browser has sent. The server may have received fewer bytes. */
  readonly sent: number;
  /** `waiting`: the connection was lost. The file will be sent again. */
  readonly state: 'sending' | 'waiting' | 'failed' | 'sent';
  /** Id of the stored file. Empty until the file has been sent completely. */
  readonly uploadId: string;
  readonly error: ApiError | null;
}

export const sendings = signal<readonly Sending[]>([]);

const pauseMs = growing(500, 15_000);
/** If an upload makes no progress for this long, the file is sent again. */
const stuckMs = 60_000;
/** Minimum time between two updates, so that not every packet redraws the page. */
const shownEveryMs = 100;

let serial = 0;
const stops = new Map<string, AbortController>();

export function cancelSending({ key }: Sending): void {
  stops.get(key)?.abort();
  sendings.value = sendings.peek().filter((each) => each.key !== key);
}

export async function sendFile(file: File): Promise<string | null> {
  const key = `sending-${++serial}`;
  const { name, size } = file;
  sendings.value = [
    ...sendings.peek(),
    { key, name, size, sent: 0, state: 'sending', uploadId: '', error: null },
  ];
  const stop = new AbortController();
  stops.set(key, stop);
  try {
    const uploadId = await deliver(key, file, stop.signal);
    change(key, { state: 'sent', uploadId });
    return uploadId;
  } catch (error) {
    if (!stop.signal.aborted) change(key, { state: 'failed', error: problemOf(error) });
    return null;
  } finally {
    stops.delete(key);
  }
}

function change(key: string, changes: Partial<Sending>): void {
  sendings.value = sendings.peek().map((each) => (each.key === key ? { ...each, ...changes } : each));
}

function deliver(key: string, file: File, signal: AbortSignal): Promise<string> {
  const work = (): Promise<string> => {
    change(key, { state: 'sending', sent: 0, error: null });
    return send(file, signal, (sent) => change(key, { sent }));
  };
  const isTransient = (error: unknown) => error instanceof ApiError && error.isTransient;
  const onRetry = (error: unknown) => change(key, { state: 'waiting', error: problemOf(error) });
  return retry({ pauseMs, isTransient, signal, onRetry }, work, clockOf({ hidden: true }));
}

/** `fetch` does not report progress. */
function send(file: File, signal: AbortSignal, onProgress: (bytes: number) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    let shownAt = 0;
    const giveUp = (): void => request.abort();
    signal.addEventListener('abort', giveUp);
    let stuck = setTimeout(giveUp, stuckMs);
    request.open('POST', apiHref(withQuery('/v1/imports/inspect', { filename: file.name })));
    request.setRequestHeader('content-type', 'application/octet-stream');
    request.setRequestHeader('sluice-environment', session.peek()?.environment ?? '');
    request.upload.onprogress = ({ loaded, timeStamp }) => {
      clearTimeout(stuck);
      stuck = setTimeout(giveUp, stuckMs);
      if (timeStamp - shownAt < shownEveryMs) return;
      shownAt = timeStamp;
      onProgress(loaded);
    };
    request.onerror = request.onabort = () => reject(unreachable('The connection was lost'));
    request.onloadend = () => {
      clearTimeout(stuck);
      signal.removeEventListener('abort', giveUp);
    };
    request.onload = () => {
      const { status, responseText } = request;
      if (status === 200) return resolve((JSON.parse(responseText) as Inspection).upload_id);
      reject(refusal(status, responseText, request.getResponseHeader('x-request-id')));
    };
    request.send(file);
  });
}
