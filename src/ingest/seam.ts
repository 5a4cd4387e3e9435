import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../base/errors.ts';
import type { System } from '../context.ts';
import type { JsonObject } from '../formats/json-text.ts';
import type { ReadItem } from './read-batch.ts';

/** Accepts calls in the format of another service at the URLs of our own calls. */
export interface CallSeam {
  /** Sentence for the API document. */
  readonly description: string;
  /** Responses by status. */
  readonly answers: Readonly<Record<number, object>>;
  readonly refuses: readonly ErrorCode[];
  /** Returns `null` if the body is one of our own records. */
  take(
    system: System,
    name: 'identify' | 'company' | 'track',
    body: JsonObject,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> | null;
  /** A batch may mix our records and foreign calls. */
  readerOf(request: FastifyRequest, body: Buffer): ReadItem;
}
