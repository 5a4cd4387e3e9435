import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { KiB, MiB } from '../../base/bytes.ts';
import { type InputError, inputError } from '../../base/errors.ts';
import { renderErrors, setRetryAfter } from './errors.ts';

/** Answers that a serving process holds until their callers have taken them: per connection, per environment, in all. */
export const MAX_HELD_BYTES = 128 * MiB;
export const ANSWER_PIECE_BYTES = 64 * KiB;

const maxHeldBytesPerConnection = 4 * 1024 * 1024;
const maxHeldBytesPerEnvironment = 16 * 1024 * 1024;
/** The share of all held bytes that answers without a key may take. */
const maxHeldBytesWithoutKey = 32 * 1024 * 1024;
/** An answer is cut if no piece of it is taken for so long, that is at less than 2 KiB a second. */
const answerStallMs = 30_000;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The largest possible answer of a GET, as far as it is held in memory. Defaults to ANSWER_PIECE_BYTES. */
    answerBytes?: number;
  }
}

/**
 * A caller that does not read leaves its answers in our memory. So the largest possible size of an answer is reserved before
 * it is made: for the connection before the key is looked up, for the environment and the whole process after it, so that a
 * stranger uses up nothing that callers share. A connection or an environment with too much reserved is refused (429); when
 * the process has too much reserved, everybody is (503). Answers are sent in pieces, and a connection on which no piece is
 * taken for a while is cut. Register it before the plugin that looks up the key.
 */
export function addSlowReaderLimits(app: FastifyInstance, stallMs = answerStallMs): void {
  const holds = new Holds(stallMs);
  const held = new WeakMap<FastifyRequest, UnreadAnswer>();
  const hold = (request: FastifyRequest, reply: FastifyReply, bytes: number): UnreadAnswer | null => {
    // Nobody takes the answer to a client that left while it was made, and no later event would release it.
    if (request.raw.socket.destroyed) return null;
    const answer = holds.hold(request, bytes);
    held.set(request, answer);
    reply.raw.once('close', () => holds.release(answer));
    return answer;
  };
  app.addHook('onRequest', (request, reply, done) => {
    const { alwaysServed, answerBytes = ANSWER_PIECE_BYTES } = request.routeOptions.config;
    if (request.method !== 'GET' || alwaysServed === true) return done();
    // Runs before the key is looked up, which costs a query.
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
    // Only an answer whose size was not known before can be refused here: what a POST did is done, and is answered.
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
  watch: NodeJS.Timeout | undefined;
}

/** Memory that one answer takes until its caller has taken it. */
interface UnreadAnswer {
  bytes: number;
  readonly connection: Connection;
  /** The connection of the answer; once its key is known, also its environment and the whole process. */
  readonly owners: Set<Owner>;
}

class Holds {
  readonly #stallMs: number;
  readonly #all: Owner = { bytes: 0 };
  readonly #withoutKey: Owner = { bytes: 0 };
  /** Owners by environment; for callers without a key by route, so that none of them is in the way of another. */
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

  /** Counts the answer against what callers share; if that is too much, releases it and returns why. */
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
    // The answer to a client that has left meanwhile is released already.
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
    clearInterval(connection.watch);
    connection.watch = undefined;
  }

  #connection(socket: Socket): Connection {
    const known = this.#connections.get(socket);
    if (known !== undefined) return known;
    const connection: Connection = { bytes: 0, answers: new Set(), watch: undefined };
    this.#connections.set(socket, connection);
    // An answer that still waits for its turn then emits no event of its own.
    socket.once('close', () => {
      for (const answer of connection.answers) this.release(answer);
    });
    return connection;
  }
}

/** An owner that holds nothing may hold one answer of any size. */
function isBeyond(owner: Owner, bytes: number, most: number): boolean {
  return owner.bytes > 0 && owner.bytes + bytes > most;
}

function full(): InputError {
  return inputError('unavailable', 'Too many answers have not been read by their callers; try again later');
}

function tooMuch(whose: string): InputError {
  return inputError('rate_limited', `Too many answers to ${whose} have not been read; read them first`);
}

/** Cuts a connection that took nothing in two looks, `stallMs` apart: nothing waits while we are the slow ones. */
function endUnread(socket: Socket, stallMs: number): NodeJS.Timeout {
  let before = -1;
  let stalls = 0;
  const watch = setInterval(() => {
    const taken = socket.bytesWritten - socket.writableLength;
    stalls = taken === before && socket.writableLength > 0 ? stalls + 1 : 0;
    before = taken;
    if (stalls === 2) socket.destroy();
  }, stallMs / 2);
  return watch.unref();
}
