import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type InputError, inputError } from '../../base/errors.ts';
import { KiB, MiB } from '../../base/limits.ts';
import { type Poller, startWatch } from '../../base/timers.ts';
import { renderErrors, setRetryAfter } from './errors.ts';

/** Maximum size of all unread responses in memory. */
export const MAX_HELD_BYTES = 128 * MiB;
export const ANSWER_PIECE_BYTES = 64 * KiB;

const maxHeldBytesPerConnection = 4 * 1024 * 1024;
const maxHeldBytesPerEnvironment = 16 * 1024 * 1024;
/** Maximum size of the responses to requests without a key. It is part of MAX_HELD_BYTES. */
const maxHeldBytesWithoutKey = 32 * 1024 * 1024;
/**
 * Time for the client to read a piece of the response, at some 2 KiB per second. Then the
 * connection is cut.
 */
const answerStallMs = 30_000;

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Maximum number of bytes that the response to a GET keeps in memory. Default:
     * ANSWER_PIECE_BYTES.
     */
    answerBytes?: number;
  }
}

/**
 * Limits the memory of responses that clients do not read, and cuts stalled connections. Before the
 * key look-up, the largest possible response to a GET counts towards the limit of the connection.
 * After the look-up, the response also counts towards the limits of the environment (429) and the
 * process (503). Register these limits before the key look-up.
 */
export function addSlowReaderLimits(app: FastifyInstance, stallMs = answerStallMs): void {
  const unread = new UnreadAnswers(stallMs);
  const unreadAnswers = new WeakMap<FastifyRequest, UnreadAnswer>();
  const hold = (request: FastifyRequest, reply: FastifyReply, bytes: number): UnreadAnswer | null => {
    // The response to a client that left is not counted, because it would never be released.
    if (request.raw.socket.destroyed) return null;
    const answer = unread.hold(request, bytes);
    unreadAnswers.set(request, answer);
    reply.raw.once('close', () => unread.release(answer));
    return answer;
  };
  app.addHook('onRequest', (request, reply, done) => {
    const { alwaysServed, answerBytes = ANSWER_PIECE_BYTES } = request.routeOptions.config;
    if (request.method !== 'GET' || alwaysServed === true) return done();
    // This check precedes the key look-up, which costs a query.
    const refusal = unread.refusalOfConnection(request, answerBytes);
    if (refusal !== null) return done(refusal);
    hold(request, reply, answerBytes);
    done();
  });
  app.addHook('preHandler', (request, _reply, done) => {
    const answer = unreadAnswers.get(request);
    done((answer !== undefined && unread.charge(answer, request)) || undefined);
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    if (request.method === 'HEAD' || (typeof payload !== 'string' && !Buffer.isBuffer(payload))) {
      return done(null, payload);
    }
    const bytes = Buffer.byteLength(payload);
    const reserved = unreadAnswers.get(request);
    unread.resize(reserved, bytes <= ANSWER_PIECE_BYTES ? bytes : 0);
    if (bytes <= ANSWER_PIECE_BYTES) return done(null, payload);
    // Only responses of unknown size are refused here. The response to a completed POST is always
    // sent.
    const refusal = reserved === undefined ? null : unread.refusal(request, bytes);
    if (refusal !== null) return done(null, refuse(reply, refusal));
    if (reserved !== undefined) unread.resize(reserved, bytes);
    else {
      const answer = hold(request, reply, bytes);
      if (answer !== null) unread.chargeWithoutLimit(answer);
    }
    reply.header('content-length', bytes);
    done(null, Readable.from(inPieces(Buffer.from(payload)), { objectMode: false }));
  });
}

function refuse(reply: FastifyReply, { status, problems }: InputError): string {
  setRetryAfter(reply, status);
  reply.code(status).header('content-type', 'application/json; charset=utf-8');
  return JSON.stringify(renderErrors(problems));
}

function* inPieces(answer: Buffer): Generator<Buffer> {
  for (let at = 0; at < answer.length; at += ANSWER_PIECE_BYTES) {
    yield answer.subarray(at, at + ANSWER_PIECE_BYTES);
  }
}

interface ByteTotal {
  bytes: number;
}

interface Connection extends ByteTotal {
  readonly answers: Set<UnreadAnswer>;
  watch: Poller | undefined;
}

interface UnreadAnswer {
  bytes: number;
  readonly connection: Connection;
  /**
   * Totals that include this response. At first, this is only the connection's total. After the key
   * look-up, the totals of the environment and the process are added.
   */
  readonly totals: Set<ByteTotal>;
}

class UnreadAnswers {
  readonly #stallMs: number;
  readonly #all: ByteTotal = { bytes: 0 };
  readonly #withoutKey: ByteTotal = { bytes: 0 };
  /** Totals by environment or, for requests without a key, by route. */
  readonly #environments = new Map<number | string, ByteTotal>();
  readonly #connections = new WeakMap<Socket, Connection>();

  constructor(stallMs: number) {
    this.#stallMs = stallMs;
  }

  refusal(request: FastifyRequest, bytes: number): InputError | null {
    return (
      this.refusalOfConnection(request, bytes) ?? (isBeyond(this.#all, bytes, MAX_HELD_BYTES) ? full() : null)
    );
  }

  refusalOfConnection(request: FastifyRequest, bytes: number): InputError | null {
    const connection = this.#connection(request.raw.socket);
    return isBeyond(connection, bytes, maxHeldBytesPerConnection) ? tooMuch('this connection') : null;
  }

  /**
   * Counts the response towards the limits of the environment and the process. A response beyond a
   * limit is refused and no longer counted.
   */
  charge(answer: UnreadAnswer, { caller, routeOptions }: FastifyRequest): InputError | null {
    const name = caller?.environment.environmentId ?? routeOptions.url ?? 'unknown';
    const environment = this.#environments.get(name) ?? { bytes: 0 };
    this.#environments.set(name, environment);
    const charged: [ByteTotal, number][] = [
      [environment, maxHeldBytesPerEnvironment],
      [this.#all, MAX_HELD_BYTES],
    ];
    if (caller === null) charged.push([this.#withoutKey, maxHeldBytesWithoutKey]);
    const beyond = charged.find(([total, maxBytes]) => isBeyond(total, answer.bytes, maxBytes));
    if (beyond !== undefined) {
      this.release(answer);
      return beyond[0] === environment ? tooMuch('this environment') : full();
    }
    for (const [total] of charged) this.#count(answer, total);
    return null;
  }

  chargeWithoutLimit(answer: UnreadAnswer): void {
    this.#count(answer, this.#all);
  }

  #count(answer: UnreadAnswer, total: ByteTotal): void {
    // The response to a client that left is already released.
    if (!answer.connection.answers.has(answer)) return;
    answer.totals.add(total);
    total.bytes += answer.bytes;
  }

  hold(request: FastifyRequest, bytes: number): UnreadAnswer {
    const connection = this.#connection(request.raw.socket);
    const answer: UnreadAnswer = { bytes: 0, connection, totals: new Set([connection]) };
    connection.answers.add(answer);
    connection.watch ??= endUnread(request.raw.socket, this.#stallMs);
    this.resize(answer, bytes);
    return answer;
  }

  resize(answer: UnreadAnswer | undefined, bytes: number): void {
    if (answer === undefined || !answer.connection.answers.has(answer)) return;
    for (const total of answer.totals) total.bytes += bytes - answer.bytes;
    answer.bytes = bytes;
  }

  release(answer: UnreadAnswer): void {
    this.resize(answer, 0);
    const { connection } = answer;
    connection.answers.delete(answer);
    if (connection.answers.size > 0) return;
    void connection.watch?.stop();
    connection.watch = undefined;
  }

  #connection(socket: Socket): Connection {
    const existing = this.#connections.get(socket);
    if (existing !== undefined) return existing;
    const connection: Connection = { bytes: 0, answers: new Set(), watch: undefined };
    this.#connections.set(socket, connection);
    // Responses that wait behind others emit no event when the connection closes.
    socket.once('close', () => {
      for (const answer of connection.answers) this.release(answer);
    });
    return connection;
  }
}

/**
 * True if the response exceeds the limit. If nothing else counts towards the limit, a response is
 * always allowed.
 */
function isBeyond(total: ByteTotal, bytes: number, maxBytes: number): boolean {
  return total.bytes > 0 && total.bytes + bytes > maxBytes;
}

function full(): InputError {
  return inputError('unavailable', 'Too many answers have not been read by their callers; try again later');
}

function tooMuch(whose: string): InputError {
  return inputError('rate_limited', `Too many answers to ${whose} have not been read; read them first`);
}

/** Cuts a connection if two consecutive checks find that the client has received nothing more. */
function endUnread(socket: Socket, stallMs: number): Poller {
  let before = -1;
  let stalls = 0;
  return startWatch(stallMs / 2, () => {
    const sentBytes = socket.bytesWritten - socket.writableLength;
    stalls = sentBytes === before && socket.writableLength > 0 ? stalls + 1 : 0;
    before = sentBytes;
    if (stalls === 2) socket.destroy();
  });
}
