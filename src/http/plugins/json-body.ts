import { isUtf8 } from 'node:buffer';
import { gunzip } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { inputError, TransientError } from '../../base/errors.ts';
import { MAX_PARSED_DEPTH, MAX_RECORD_BYTES, MiB } from '../../base/limits.ts';
import { isGzip } from '../../formats/decompress.ts';
import { isNdjsonType } from '../../formats/detect-format.ts';
import { isNestedDeeper } from '../../formats/json-position.ts';
import { environmentId } from '../caller.ts';
import { wentAway } from '../gone-client.ts';
import { isDefaultType, meansJson, mediaTypeOf, readEncoding } from '../parameters.ts';
import { networkOf } from './limits.ts';
import { askForBody } from './request-body.ts';

/** Maximum size of the bodies whose caller is not known yet, in total and per address. */
const MAX_HELD_STRANGERS_BYTES = 24 * MiB;
const MAX_HELD_STRANGERS_BYTES_PER_ADDRESS = 4 * MiB;

/**
 * Maximum size of the bodies in memory, from their arrival to the response. Further bodies are
 * refused.
 */
interface HeldLimits {
  readonly bytes: number;
  /**
   * Maximum size for one environment, so that its unfinished bodies do not block other
   * environments.
   */
  readonly perEnvironment: number;
}

interface JsonBodyOptions {
  readonly timeoutMs: number;
  readonly maxBytes?: number;
  readonly ndjson?: boolean;
  readonly held?: HeldLimits;
  readonly forms?: true;
}

/**
 * Reads JSON bodies, plain or gzipped. This function registers a parser, so the routes that need it
 * must have a scope of their own.
 */
export function addJsonBody(
  scope: FastifyInstance,
  { timeoutMs, maxBytes: most = MAX_RECORD_BYTES, ndjson = false, held: limits, forms }: JsonBodyOptions,
): void {
  scope.removeAllContentTypeParsers();
  const held = limits === undefined ? null : new HeldBytes(limits);
  const heldOfStrangers = forms === undefined ? null : new HeldBytes(strangersLimits);
  if (held !== null) {
    // `onSend` always runs. The response to a client that left emits no event.
    scope.addHook('onSend', (request, _reply, payload, done) => {
      request.body = undefined;
      held.release(request);
      heldOfStrangers?.release(request);
      done(null, payload);
    });
  }
  const hold = (request: FastifyRequest, bytes: number): Error | null =>
    (request.caller === null ? heldOfStrangers : held)?.add(request, bytes) ?? null;
  scope.addContentTypeParser('*', (request, raw, done) => {
    let gzip: boolean;
    const isPublic = request.caller === null || request.caller.scopes.includes('browser');
    const maxBytes = isPublic ? Math.min(most, MAX_RECORD_BYTES) : most;
    const isSure = forms === true || isJsonType(request) || (ndjson && isNdjsonBody(request));
    try {
      // The client disconnected during the key look-up.
      if (request.raw.destroyed) throw wentAway();
      if (!isSure && !isDefaultType(mediaTypeOf(request.headers['content-type'])))
        throw notJson(request, ndjson);
      const length = Number(request.headers['content-length'] ?? 0);
      if (length > maxBytes) throw tooLarge(maxBytes);
      // Space is reserved for the whole body. Otherwise, unfinished bodies might use up the limit,
      // and none could be completed.
      const refusal = hold(request, length);
      if (refusal !== null) throw refusal;
      gzip = readEncoding(request.headers['content-encoding']);
    } catch (error) {
      done(error as Error);
      return;
    }
    askForBody(request.raw);
    const isAnnounced = request.headers['content-length'] !== undefined;
    const end = (text: Buffer): void => {
      if (!isSure && !beginsAsJson(text)) done(notJson(request, ndjson));
      else done(null, text);
    };
    const holdPiece = (bytes: number): Error | null => (isAnnounced ? null : hold(request, bytes));
    collect(raw as FastifyRequest['raw'], { timeoutMs, maxBytes, hold: holdPiece }, (error, body) => {
      if (error !== null) return done(error, body);
      if (!gzip && !isGzip(body)) return end(body);
      gunzip(body, { maxOutputLength: maxBytes }, (failure, text) => {
        const problem = failure === null ? hold(request, text.length) : unpackError(failure, maxBytes);
        if (problem === null) end(text);
        else done(problem);
      });
    });
  });
}

const strangersLimits = {
  bytes: MAX_HELD_STRANGERS_BYTES,
  perEnvironment: MAX_HELD_STRANGERS_BYTES_PER_ADDRESS,
};

class HeldBytes {
  readonly #limits: HeldLimits;
  readonly #byRequest = new WeakMap<FastifyRequest, { readonly owner: number | string; bytes: number }>();
  readonly #byOwner = new Map<number | string, number>();
  #bytes = 0;

  constructor(limits: HeldLimits) {
    this.#limits = limits;
  }

  /**
   * Counts the bytes of a body. Returns the refusal if they exceed a limit, otherwise `null`. If no
   * other body is in memory, a body always fits.
   */
  add(request: FastifyRequest, bytes: number): Error | null {
    const owner = request.caller === null ? networkOf(request.ip) : environmentId(request);
    const ownBytes = this.#byRequest.get(request)?.bytes ?? 0;
    const ownerBytes = this.#byOwner.get(owner) ?? 0;
    const { bytes: most, perEnvironment } = this.#limits;
    if (ownerBytes > ownBytes && ownerBytes + bytes > perEnvironment) return tooMuchOfEnvironment();
    if (this.#bytes > ownBytes && this.#bytes + bytes > most) return tooMuchHeld();
    this.#byRequest.set(request, { owner, bytes: ownBytes + bytes });
    this.#byOwner.set(owner, ownerBytes + bytes);
    this.#bytes += bytes;
    return null;
  }

  release(request: FastifyRequest): void {
    const reservation = this.#byRequest.get(request);
    if (reservation === undefined) return;
    const { owner, bytes } = reservation;
    const remaining = (this.#byOwner.get(owner) ?? 0) - bytes;
    this.#byRequest.delete(request);
    if (remaining === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, remaining);
    this.#bytes -= bytes;
  }
}

export function bodyBytes(request: FastifyRequest): Buffer {
  return (request.body as Buffer | null | undefined) ?? Buffer.alloc(0);
}

export function isNdjsonBody(request: FastifyRequest): boolean {
  return isNdjsonType(mediaTypeOf(request.headers['content-type']));
}

function isJsonType({ headers }: FastifyRequest): boolean {
  const type = headers['content-type'];
  return type === 'application/json' || meansJson(mediaTypeOf(type));
}

export function beginsAsJson(text: Buffer): boolean {
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
    readonly hold: (bytes: number) => Error | null;
  },
  done: (error: Error | null, body: Buffer) => void,
): void {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let isEnded = false;
  const end = (error: Error | null): void => {
    if (isEnded) return;
    isEnded = true;
    clearTimeout(timer);
    // After a whole body, the listeners remain, because removing them costs a microsecond, and only
    // `close` can follow.
    if (error !== null) {
      raw.off('data', onData).off('end', onEnd).off('error', onClose).off('close', onClose);
    }
    const body = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
    // The remaining listeners would keep the body in memory.
    pieces.length = 0;
    done(error, body);
  };
  const onData = (piece: Buffer): void => {
    bytes += piece.length;
    const problem = bytes > maxBytes ? tooLarge(maxBytes) : hold(piece.length);
    if (problem === null) pieces.push(piece);
    else end(problem);
  };
  const onEnd = (): void => end(null);
  const onClose = (): void => {
    if (!isEnded) end(wentAway());
  };
  const timer = setTimeout(() => end(tooSlow(timeoutMs)), timeoutMs);
  raw.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose);
}

function tooLarge(maxBytes: number): Error {
  const what = maxBytes === MAX_RECORD_BYTES ? 'A record' : 'The body';
  return inputError('payload_too_large', `${what} may have ${maxBytes} bytes`, 'the request body');
}

function tooMuchHeld(): Error {
  return new TransientError('too many bytes of bodies are held');
}

function tooMuchOfEnvironment(): Error {
  return inputError(
    'rate_limited',
    'Too many bodies of this environment or address are under way; send fewer at a time',
  );
}

function tooSlow(timeoutMs: number): Error {
  return inputError(
    'upload_too_slow',
    `The body did not come within ${timeoutMs / 1000} s`,
    'the request body',
  );
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

const QUOTE = 34;
const OPEN_ARRAY = 91;
const BACKSLASH = 92;
const CLOSE_ARRAY = 93;

/**
 * Reads the members of a body, but skips the content of its first array. A body that is an array is
 * read as `{}`.
 */
export function readEnvelope(body: Buffer): Readonly<Record<string, unknown>> {
  let from = -1;
  let depth = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === QUOTE) {
      while (++at < body.length && body[at] !== QUOTE) if (body[at] === BACKSLASH) at++;
    } else if (byte === OPEN_ARRAY) {
      if (depth++ === 0) from = at;
    } else if (byte === CLOSE_ARRAY && --depth <= 0) {
      const rest = Buffer.concat([body.subarray(0, from + 1), body.subarray(at)]);
      return rest.toString('utf8').trim() === '[]' ? {} : readJsonObject(rest);
    }
  }
  return readJsonObject(body);
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
