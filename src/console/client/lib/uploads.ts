import { signal } from '@preact/signals';
import type { Upload } from '../../../api/upload.ts';
import { ApiError, api, apiHref, problemOf, refusal, session, unreachable } from './api.ts';
import { pause } from './outage.ts';

/*
 * Files on their way to the server, by the tus protocol: created, then sent from wherever the server says that it ends. They go
 * on while other screens are shown, and after a lost connection. The browser reads nothing of a file: it hands its bytes over.
 */

/** A file on its way. */
export interface Sending {
  /** The page's own key; the upload has an id once it is created. */
  readonly key: string;
  readonly uploadId: string | null;
  readonly name: string;
  readonly size: number;
  /** Bytes that are there, or on the wire. */
  readonly sent: number;
  /** `waiting`: the connection was lost, and is tried again. */
  readonly state: 'sending' | 'waiting' | 'done' | 'failed';
  readonly error: ApiError | null;
}

export const sendings = signal<readonly Sending[]>([]);

const firstPauseMs = 500;
const longestPauseMs = 15_000;
/**
 * The most that one request carries. A browser that loses a connection may send the whole request again without a word, and reads
 * the server's refusal only after it; so a request is never large.
 */
const pieceBytes = 32 * 1024 * 1024;
/** A request of which nothing moves for so long is given up, and the upload goes on with another. */
const stuckMs = 60_000;
/** Left out of what is shown of progress in between: the page need not be drawn for every packet. */
const shownEveryMs = 100;

let serial = 0;
/** Stops the sending of a file, by its key. */
const stops = new Map<string, AbortController>();

/** Sends nothing more of the file, and has the server remove what it has of it. */
export async function cancelSending({ key, uploadId }: Sending): Promise<void> {
  stops.get(key)?.abort();
  sendings.value = sendings.peek().filter((each) => each.key !== key);
  if (uploadId !== null) await removeUpload(uploadId);
}

/** Sends the file; resolves to its id as soon as it is whole, and to null if it cannot be. What fails is in `sendings`. */
export async function sendFile(file: File): Promise<string | null> {
  const key = `sending-${++serial}`;
  const { name, size } = file;
  const sending: Sending = { key, uploadId: null, name, size, sent: 0, state: 'sending', error: null };
  sendings.value = [...sendings.peek(), sending];
  const stop = new AbortController();
  stops.set(key, stop);
  try {
    const uploadId = await deliver(key, file, stop.signal);
    change(key, { state: 'done', sent: file.size });
    return uploadId;
  } catch (error) {
    if (stop.signal.aborted) return null;
    change(key, { state: 'failed', error: problemOf(error) });
    return null;
  } finally {
    stops.delete(key);
  }
}

function change(key: string, changes: Partial<Sending>): void {
  sendings.value = sendings.peek().map((each) => (each.key === key ? { ...each, ...changes } : each));
}

/** Tries again as long as trying again may help. */
async function deliver(key: string, file: File, signal: AbortSignal): Promise<string> {
  let known: Upload | null = null;
  for (let failures = 0; ; ) {
    try {
      known = known === null ? await findOrCreate(file) : await findUpload(known.upload_id);
      change(key, { uploadId: known.upload_id, sent: known.received_bytes, state: 'sending', error: null });
      if (known.received_bytes === file.size) return known.upload_id;
      if (signal.aborted) await removeUpload(known.upload_id);
      signal.throwIfAborted();
      const before = known.received_bytes;
      const sent = await append(known, file, signal, (bytes) => {
        if (bytes > 0) failures = 0;
        change(key, { sent: before + bytes });
      });
      if (sent === file.size) return known.upload_id;
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError) || !mayPass(error)) throw error;
      change(key, { state: 'waiting', error });
      await pause(Math.min(longestPauseMs, firstPauseMs * 2 ** failures++), { hidden: true });
    }
  }
}

/** Returns true if the same may work in a moment: no answer came, the server is busy, or the upload ends elsewhere than was thought. */
function mayPass({ status }: ApiError): boolean {
  return status === 0 || status === 408 || status === 409 || status === 429 || status >= 500;
}

function findUpload(uploadId: string): Promise<Upload> {
  return api<Upload>(`/v1/uploads/${uploadId}`);
}

/**
 * The upload that was begun with this very file, by name, size and time of change, in this browser; else a new one. Of other
 * browsers nobody knows whether they sent the same bytes, so nothing is appended to theirs.
 */
async function findOrCreate(file: File): Promise<Upload> {
  const mark = `sluice-upload ${session.peek()?.environment} ${file.name} ${file.size} ${file.lastModified}`;
  const begun = localStorage.getItem(mark);
  if (begun !== null) {
    const found = await findUpload(begun).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    });
    if (found !== null) return found;
    localStorage.removeItem(mark);
  }
  const filetype = file.type === '' ? '' : `,filetype ${base64(file.type)}`;
  const created = await api<Upload>('/v1/uploads', {
    method: 'POST',
    headers: {
      'tus-resumable': '1.0.0',
      'upload-length': String(file.size),
      'upload-metadata': `filename ${base64(file.name)}${filetype}`,
    },
  });
  localStorage.setItem(mark, created.upload_id);
  return created;
}

/** Returns true if this browser began the upload: then the same file, chosen again, goes on with it. */
export function isBegunHere(uploadId: string): boolean {
  return Object.values({ ...localStorage }).includes(uploadId);
}

export async function removeUpload(uploadId: string): Promise<void> {
  await api(`/v1/uploads/${uploadId}`, { method: 'DELETE' });
  sendings.value = sendings.peek().filter((each) => each.uploadId !== uploadId);
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/**
 * Sends the next piece of the file; resolves to where the upload ends then. XMLHttpRequest, because fetch does not say how far it
 * is.
 */
function append(
  upload: Upload,
  file: File,
  signal: AbortSignal,
  onProgress: (bytes: number) => void,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const from = upload.received_bytes;
    let shownAt = 0;
    const giveUp = (): void => request.abort();
    signal.addEventListener('abort', giveUp);
    let stuck = setTimeout(giveUp, stuckMs);
    request.open('PATCH', apiHref(`/v1/uploads/${upload.upload_id}`));
    request.setRequestHeader('content-type', 'application/offset+octet-stream');
    request.setRequestHeader('tus-resumable', '1.0.0');
    request.setRequestHeader('upload-offset', String(from));
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
      if (request.status === 204) return resolve(Number(request.getResponseHeader('upload-offset')));
      reject(refusal(request.status, request.responseText, request.getResponseHeader('x-request-id')));
    };
    request.send(file.slice(from, from + pieceBytes));
  });
}
