import { isUtf8 } from 'node:buffer';
import { gunzip } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { inputError, TransientError } from '../../domain/errors.ts';
import { MAX_PARSED_DEPTH, MAX_RECORD_BYTES } from '../../domain/limits.ts';
import { isGzip } from '../../formats/decompress.ts';
import { isNdjsonType } from '../../formats/detect-format.ts';
import { isNestedDeeper } from '../../formats/json-nesting.ts';
import { isUnsaid, meansJson, mediaTypeOf, readEncoding } from '../request-headers.ts';
import { askForBody } from './request-body.ts';

export interface JsonBodyOptions {
  readonly timeoutMs: number;
  readonly maxBytes?: number;
  /** NDJSON is taken too. */
  readonly ndjson?: boolean;
  /** Bytes of bodies that the scope holds at a time, from the first until the answer; more are refused for the moment. */
  readonly maxHeldBytes?: number;
}

/**
 * The bodies of single records: JSON, as it is or gzip, read whole, within a size and a time. Registers a parser, so
 * call it in a scope of the routes' own; their `request.body` is then a Buffer.
 */
export function addJsonBody(
  scope: FastifyInstance,
  { timeoutMs, maxBytes = MAX_RECORD_BYTES, ndjson = false, maxHeldBytes }: JsonBodyOptions,
): void {
  scope.removeAllContentTypeParsers();
  const held = maxHeldBytes === undefined ? null : new HeldBytes(maxHeldBytes);
  if (held !== null) {
    scope.addHook('onRequest', (request, reply, done) => {
      reply.raw.once('close', () => held.release(request.raw));
      done();
    });
  }
  scope.addContentTypeParser('*', (request, raw, done) => {
    let gzip: boolean;
    const isSure = isJsonType(request) || (ndjson && isNdjsonBody(request));
    try {
      if (!isSure && !isUnsaid(mediaTypeOf(request.headers['content-type']))) throw notJson(request, ndjson);
      const length = Number(request.headers['content-length'] ?? 0);
      if (length > maxBytes) throw tooLarge(maxBytes);
      // Before it comes: of many that come at once some are then read whole, and not all of them half.
      if (held?.add(request.raw, length) === false) throw tooMuchHeld();
      gzip = readEncoding(request.headers['content-encoding']);
    } catch (error) {
      done(error as Error);
      return;
    }
    askForBody(request.raw);
    const isAnnounced = request.headers['content-length'] !== undefined;
    const hold = (bytes: number): boolean => held?.add(request.raw, bytes) ?? true;
    const limits = { timeoutMs, maxBytes, hold: isAnnounced ? () => true : hold };
    const end = (text: Buffer): void => {
      if (!isSure && !beginsAsJson(text)) done(notJson(request, ndjson));
      else done(null, text);
    };
    collect(raw as FastifyRequest['raw'], limits, (error, body) => {
      if (error !== null) return done(error, body);
      if (!gzip && !isGzip(body)) return end(body);
      gunzip(body, { maxOutputLength: maxBytes }, (failure, text) => {
        if (failure !== null) done(unpackError(failure, maxBytes));
        else if (hold(text.length)) end(text);
        else done(tooMuchHeld());
      });
    });
  });
}

/** Bytes of bodies that are held until their requests are answered. */
class HeldBytes {
  readonly #max: number;
  readonly #byRequest = new WeakMap<FastifyRequest['raw'], number>();
  #bytes = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** False if there is no room. One body alone always has room. */
  add(request: FastifyRequest['raw'], bytes: number): boolean {
    const own = this.#byRequest.get(request) ?? 0;
    if (this.#bytes > own && this.#bytes + bytes > this.#max) return false;
    this.#bytes += bytes;
    this.#byRequest.set(request, own + bytes);
    return true;
  }

  release(request: FastifyRequest['raw']): void {
    this.#bytes -= this.#byRequest.get(request) ?? 0;
    this.#byRequest.delete(request);
  }
}

/** The body that `addJsonBody` has read; empty where there was none. */
export function bodyBytes(request: FastifyRequest): Buffer {
  return (request.body as Buffer | null | undefined) ?? Buffer.alloc(0);
}

/** Whether the body of an `addJsonBody` that takes both is NDJSON. */
export function isNdjsonBody(request: FastifyRequest): boolean {
  return isNdjsonType(mediaTypeOf(request.headers['content-type']));
}

function isJsonType({ headers }: FastifyRequest): boolean {
  const type = headers['content-type'];
  return type === 'application/json' || meansJson(mediaTypeOf(type));
}

/** Whether it begins as an object or an array does, byte order mark and white space aside. */
function beginsAsJson(text: Buffer): boolean {
  return text.length === 0 || /^(?:\xef\xbb\xbf)?\s*[{[]/.test(text.toString('latin1', 0, 1_000));
}

function notJson({ headers }: FastifyRequest, orNdjson: boolean): Error {
  const other = orNdjson ? ', or NDJSON, with application/x-ndjson' : '';
  const message = `Send JSON, with Content-Type: application/json${other}`;
  return inputError(
    'unsupported_media_type',
    message,
    `Content-Type: ${mediaTypeOf(headers['content-type'])}`,
  );
}

function collect(
  raw: FastifyRequest['raw'],
  {
    timeoutMs,
    maxBytes,
    hold,
  }: {
    readonly timeoutMs: number;
    readonly maxBytes: number;
    /** Whether so many more bytes may be held. */
    readonly hold: (bytes: number) => boolean;
  },
  done: (error: Error | null, body: Buffer) => void,
): void {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let ended = false;
  const end = (error: Error | null): void => {
    if (ended) return;
    ended = true;
    clearTimeout(timer);
    // Of a body that was read to its end there is nothing more to hear but that it closes; taking them away costs a microsecond.
    if (error !== null) {
      raw.off('data', onData).off('end', onEnd).off('error', onClose).off('close', onClose);
    }
    done(error, pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces));
  };
  const onData = (piece: Buffer): void => {
    bytes += piece.length;
    if (bytes > maxBytes) end(tooLarge(maxBytes));
    else if (!hold(piece.length)) end(tooMuchHeld());
    else pieces.push(piece);
  };
  const onEnd = (): void => end(null);
  const onClose = (): void => {
    if (!ended) end(wentAway());
  };
  const timer = setTimeout(() => end(tooSlow(timeoutMs)), timeoutMs);
  raw.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose);
  // While the key was looked up; then none of these events comes any more.
  if (raw.destroyed) onClose();
}

function tooLarge(maxBytes: number): Error {
  const what = maxBytes === MAX_RECORD_BYTES ? 'A record' : 'The body';
  return inputError('payload_too_large', `${what} may have ${maxBytes} bytes`, 'the request body');
}

function tooMuchHeld(): Error {
  return new TransientError('too many bytes of bodies are held');
}

function tooSlow(timeoutMs: number): Error {
  return inputError(
    'upload_too_slow',
    `The body did not come within ${timeoutMs / 1000} s`,
    'the request body',
  );
}

/** Nobody reads this; but it is no failure of ours, and must not be counted as one. */
function wentAway(): Error {
  return inputError('upload_too_slow', 'The client went away while it was sending', 'the request body');
}

function unpackError(error: NodeJS.ErrnoException, maxBytes: number): Error {
  if (error.code === 'ERR_BUFFER_TOO_LARGE') return tooLarge(maxBytes);
  return inputError(
    'invalid_json',
    'The body is not gzip, though Content-Encoding says so',
    'Content-Encoding: gzip',
  );
}

const byteOrderMark = '\ufeff';

/** A body that is a JSON object, or nothing, which is an empty one. @throws InputError `invalid_json`, `invalid_field`. */
export function readJsonObject(body: Buffer): Readonly<Record<string, unknown>> {
  if (!isUtf8(body)) throw inputError('invalid_json', 'The body is not valid UTF-8');
  const text = body.toString('utf8').replace(byteOrderMark, '').trim();
  if (text === '') return {};
  const value = parse(text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw inputError('invalid_field', 'The body must be a JSON object');
}

function parse(text: string): unknown {
  if (isNestedDeeper(text, MAX_PARSED_DEPTH)) {
    throw inputError('invalid_field', `The body is nested deeper than ${MAX_PARSED_DEPTH} levels`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw inputError('invalid_json', 'The body is not JSON', error instanceof Error ? error.message : '');
  }
}
