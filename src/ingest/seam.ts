import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../base/errors.ts';
import type { System } from '../context.ts';
import type { JsonObject } from '../formats/json-text.ts';
import type { ReadItem } from './read-batch.ts';

/** Foreign calls at the addresses of our records. */
export interface CallSeam {
  /** Parts of the API document: a sentence, answers by status and refusals. */
  readonly description: string;
  readonly answers: Readonly<Record<number, object>>;
  readonly refuses: readonly ErrorCode[];
  /** Takes a call to `/v1/<name>`. Returns `null` for a record of ours. */
  take(
    system: System,
    name: 'identify' | 'company' | 'track',
    body: JsonObject,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> | null;
  /** Returns the reader of a batch's items, which may be of both kinds. */
  readerOf(request: FastifyRequest, body: Buffer): ReadItem;
}
