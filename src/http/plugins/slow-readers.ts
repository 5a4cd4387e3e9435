import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { KiB, MiB } from '../../base/bytes.ts';
import { type InputError, inputError } from '../../base/errors.ts';
import { type Poller, startWatch } from '../../base/timers.ts';
import { renderErrors, setRetryAfter } from './errors.ts';

/** Unread answers in memory: per connection, per environment, in all. */
export const MAX_HELD_BYTES = 128 * MiB;
export const ANSWER_PIECE_BYTES = 64 * KiB;

const maxHeldBytesPerConnection = 4 * 1024 * 1024;
const maxHeldBytesPerEnvironment = 16 * 1024 * 1024;
/** Part of it for answers without a key. */
const maxHeldBytesWithoutKey = 32 * 1024 * 1024;
/** An answer is cut if no piece is taken for this time, so below 2 KiB a second. */
const answerStallMs = 30_000;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Largest answer of a GET in memory. Default: ANSWER_PIECE_BYTES. */
    answerBytes?: number;
  }
}

/**
 * Bounds answers that callers do not read. Reserves the largest size of an answer before it is
 * made: for the connection before the key look-up, then for the environment and process, so
 * strangers use nothing shared. Too much is refused (429, or 503 for the process). Stalled
 * connections are cut. Register it before the key look-up.
 */
export function addSlowReaderLimits(app: FastifyInstance, stallMs = answerStallMs): void {
  const holds = new Holds(stallMs);
  const held = new WeakMap<FastifyRequest, UnreadAnswer>();
  const hold = (request: FastifyRequest, reply: FastifyReply, bytes: number): UnreadAnswer | null => {
    // No later event would release the answer of a departed client.
    if (request.raw.socket.destroyed) return null;
    const answer = holds.hold(request, bytes);
    held.set(request, answer);
    reply.raw.once('close', () => holds.release(answer));
    return answer;
  };
  app.addHook('onRequest', (request, reply, done) => {
    const { alwaysServed, answerBytes = ANSWER_PIECE_BYTES } = request.routeOptions.config;
    if (request.method !== 'GET' || alwaysServed === true) return done();
    // Before the key look-up, which costs a query.
    const refusal = holds.refusalOfConnection(request, answerBytes);
    if (refusal !== null) return done(refusal);
    hold(request, reply, answerBytes);
    done();
  });
  app.addHook('preHandler', (request, _reply, done) => {
    const answer = held.get(request);
    done((answer !== undefined && holds.share(answer, request)) || undefined);
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    if (request.method === 'HEAD' || (typeof payload !== 'string' && !Buffer.isBuffer(payload))) {
      return done(null, payload);
    }
    const bytes = Buffer.byteLength(payload);
    const known = held.get(request);
    holds.resize(known, bytes <= ANSWER_PIECE_BYTES ? bytes : 0);
    if (bytes <= ANSWER_PIECE_BYTES) return done(null, payload);
    // Only answers of unknown size are refused here. A finished POST is always answered.
    const refusal = known === undefined ? null : holds.refusal(request, bytes);
    if (refusal !== null) return done(null, refuse(reply, refusal));
    if (known !== undefined) holds.resize(known, bytes);
    else {
      const answer = hold(request, reply, bytes);
      if (answer !== null) holds.shareAtAnyRate(answer);
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

interface Owner {
  bytes: number;
}

interface Connection extends Owner {
  readonly answers: Set<UnreadAnswer>;
  watch: Poller | undefined;
}

/** Memory of an answer until it is taken. */
interface UnreadAnswer {
  bytes: number;
  readonly connection: Connection;
  /** Connection and, once the key is known, environment and process. */
  readonly owners: Set<Owner>;
}

class Holds {
  readonly #stallMs: number;
  readonly #all: Owner = { bytes: 0 };
  readonly #withoutKey: Owner = { bytes: 0 };
  /** By environment or, without a key, by route. */
  readonly #environments = new Map<number | string, Owner>();
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

  /** Counts the answer against shared limits. Releases it and returns why if it is too much. */
  share(answer: UnreadAnswer, { caller, routeOptions }: FastifyRequest): InputError | null {
    const name = caller?.environment.environmentId ?? routeOptions.url ?? 'unknown';
    const environment = this.#environments.get(name) ?? { bytes: 0 };
    this.#environments.set(name, environment);
    const shared: [Owner, number][] = [
      [environment, maxHeldBytesPerEnvironment],
      [this.#all, MAX_HELD_BYTES],
    ];
    if (caller === null) shared.push([this.#withoutKey, maxHeldBytesWithoutKey]);
    const beyond = shared.find(([owner, most]) => isBeyond(owner, answer.bytes, most));
    if (beyond !== undefined) {
      this.release(answer);
      return beyond[0] === environment ? tooMuch('this environment') : full();
    }
    for (const [owner] of shared) this.#count(answer, owner);
    return null;
  }

  shareAtAnyRate(answer: UnreadAnswer): void {
    this.#count(answer, this.#all);
  }

  #count(answer: UnreadAnswer, owner: Owner): void {
    // A departed client's answer is already released.
    if (!answer.connection.answers.has(answer)) return;
    answer.owners.add(owner);
    owner.bytes += answer.bytes;
  }

  hold(request: FastifyRequest, bytes: number): UnreadAnswer {
    const connection = this.#connection(request.raw.socket);
    const answer: UnreadAnswer = { bytes: 0, connection, owners: new Set([connection]) };
    connection.answers.add(answer);
    connection.watch ??= endUnread(request.raw.socket, this.#stallMs);
    this.resize(answer, bytes);
    return answer;
  }

  resize(answer: UnreadAnswer | undefined, bytes: number): void {
    if (answer === undefined || !answer.connection.answers.has(answer)) return;
    for (const owner of answer.owners) owner.bytes += bytes - answer.bytes;
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
    const known = this.#connections.get(socket);
    if (known !== undefined) return known;
    const connection: Connection = { bytes: 0, answers: new Set(), watch: undefined };
    this.#connections.set(socket, connection);
    // Waiting answers emit no event then.
    socket.once('close', () => {
      for (const answer of connection.answers) this.release(answer);
    });
    return connection;
  }
}

/** An owner may always hold one answer. */
function isBeyond(owner: Owner, bytes: number, most: number): boolean {
  return owner.bytes > 0 && owner.bytes + bytes > most;
}

function full(): InputError {
  return inputError('unavailable', 'Too many answers have not been read by their callers; try again later');
}

function tooMuch(whose: string): InputError {
  return inputError('rate_limited', `Too many answers to ${whose} have not been read; read them first`);
}

/** Cuts a connection that takes nothing in two looks `stallMs` apart, unless we are slow. */
function endUnread(socket: Socket, stallMs: number): Poller {
  let before = -1;
  let stalls = 0;
  return startWatch(stallMs / 2, () => {
    const taken = socket.bytesWritten - socket.writableLength;
    stalls = taken === before && socket.writableLength > 0 ? stalls + 1 : 0;
    before = taken;
    if (stalls === 2) socket.destroy();
  });
}
