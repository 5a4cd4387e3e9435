import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { renderErrors } from '../error-record.ts';

const statuses: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** How long a sender may take to notice that it has its answer, and to close too. */
const lingerMs = 2_000;

/** What is not even HTTP never becomes a request; it gets the error record all the same, and the connection is closed. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = statuses[error.code ?? ''] ?? 400;
  const message = status === 408 ? 'The request did not come in time' : 'The request is not proper HTTP';
  const code = status === 408 ? 'upload_too_slow' : 'invalid_field';
  const body = JSON.stringify(renderErrors([{ code, message, details: '' }]));
  const headers = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${randomUUID()}`,
    'x-content-type-options: nosniff',
    'connection: close',
  ];
  socket.end(`${headers.join('\r\n')}\r\n\r\n${body}`);
  // Whoever sends half a request and then nothing would keep the connection for ever.
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
}
