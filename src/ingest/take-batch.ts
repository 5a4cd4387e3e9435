import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorCodes, InputError, type Problem } from '../base/errors.ts';
import { MAX_REQUEST_PROBLEMS } from '../base/limits.ts';
import type { System } from '../context.ts';
import { environmentId } from '../http/caller.ts';
import type { Idempotency } from '../tasks/idempotency.ts';
import { type BatchFormat, type ReadItem, readBatch } from './read-batch.ts';
import type { BatchAnswer } from './write-batch.ts';

interface SentBatch {
  readonly reply: FastifyReply;
  readonly body: Buffer;
  readonly format: BatchFormat;
  readonly readItem: ReadItem;
  readonly idempotency?: Idempotency | null;
  readonly isWhole?: boolean;
}

/** @throws InputError if there were items and none was accepted */
export function refuseIfNothing(answer: BatchAnswer): void {
  const [first, ...more] = problemsOf(answer);
  if (answer.accepted === 0 && first !== undefined) throw new InputError(first, ...more);
}

export function problemsOf({ rejected }: BatchAnswer): Problem[] {
  return rejected.slice(0, MAX_REQUEST_PROBLEMS).map(({ index, error_code, message }) => ({
    code: errorCodes[error_code] === 400 ? error_code : 'invalid_field',
    message,
    details: `item ${index}`,
  }));
}

export function sayDropped(reply: FastifyReply, dropped: number): void {
  if (dropped > 0) reply.header('sluice-dropped-properties', dropped);
}

export async function takeItems(
  { ingest, metrics, rates }: System,
  request: FastifyRequest,
  { reply, body, format, readItem, idempotency = null, isWhole = false }: SentBatch,
): Promise<BatchAnswer> {
  const environment = environmentId(request);
  try {
    const read = async () => {
      const content = await readBatch(body, format, readItem);
      const refusal = request.server.countCall(
        request,
        reply,
        content.items.length + content.rejected.length,
      );
      if (refusal !== undefined) throw refusal;
      sayDropped(
        reply,
        content.items.reduce((sum, { record }) => sum + (record.dropped ?? 0), 0),
      );
      return { ...content, isWhole };
    };
    const answer = await ingest.batch(environment, read, body.length, idempotency);
    metrics.recordsEnded('batches', 'accepted', answer.accepted);
    metrics.recordsEnded('batches', 'refused', answer.rejected.length);
    rates.add(environment, { accepted: answer.accepted, rejected: answer.rejected.length });
    return answer;
  } catch (error) {
    metrics.recordsEnded('batches', error instanceof InputError ? 'refused' : 'failed', 1);
    rates.add(environment, { rejected: 1 });
    throw error;
  }
}
