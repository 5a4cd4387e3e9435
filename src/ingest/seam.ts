import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../base/errors.ts';
import type { System } from '../context.ts';
import type { JsonObject } from '../formats/json-text.ts';
import type { ReadItem } from './read-batch.ts';

/** Calls in another service's format that are sent to the URLs of our own calls. */
export interface CallSeam {
  /** Parts of the API document: a sentence, responses by status, and error codes. */
  readonly description: string;
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
