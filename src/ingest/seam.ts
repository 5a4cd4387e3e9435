import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../base/errors.ts';
import type { System } from '../context.ts';
import type { JsonObject } from '../formats/json-text.ts';
import type { ReadItem } from './read-batch.ts';

/** Calls that are not ours, at the addresses of our records. */
export interface CallSeam {
  /** Their part of the API document: a sentence, answers by status, and refusals. */
  readonly description: string;
  readonly answers: Readonly<Record<number, object>>;
  readonly refuses: readonly ErrorCode[];
  /** Takes a call to `/v1/<name>`; returns `null` if the body is a record of ours. */
  take(
    system: System,
    name: 'identify' | 'company' | 'track',
    body: JsonObject,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> | null;
  /** Returns the reader of the items of a batch, which may be of both kinds. */
  readerOf(request: FastifyRequest, body: Buffer): ReadItem;
}
