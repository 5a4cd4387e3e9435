import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { batchItem, batchResult } from '../../api/record.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { InputError } from '../../domain/errors.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_ITEMS } from '../../domain/limits.ts';
import { readBatch } from '../../ingest/read-batch.ts';
import type { BatchAnswer } from '../../ingest/write-batch.ts';
import { callerKeyId, environmentId } from '../plugins/auth.ts';
import { bodyBytes, isNdjsonBody } from '../plugins/json-body.ts';
import { showRecord } from '../record-route.ts';
import { bodyHeaders, readIdempotency } from '../request-headers.ts';
import { refusals } from '../schemas/answers.ts';

const items = Type.Array(batchItem.ref, {
  maxItems: MAX_BATCH_ITEMS,
  description: 'The records, in their order.',
});

const exampleItems = [
  { type: 'identify', user_id: 'u1', metadata: { plan: 'pro' }, company: { company_id: 'acme' } },
  { type: 'track', user_id: 'u1', event_name: 'signed_up', event_id: '5f0c6a4e', metadata: { via: 'ads' } },
  { type: 'company', company_id: 'acme', metadata: { industry: 'tools' } },
];

const batchSchema = {
  operationId: 'sendBatch',
  summary: 'Send a batch of records',
  description: `Identifies users and companies and tracks events, at most ${MAX_BATCH_ITEMS} in ${MAX_BATCH_BYTES / 1024 / 1024} MiB. Items are checked one by one; all that are taken are committed in one transaction, in their order, before it is answered.`,
  tags: ['ingestion'],
  headers: Type.Object(bodyHeaders),
  body: {
    content: {
      'application/json': withExamples(
        Type.Union(
          [
            Type.Object(
              { batch: items },
              {
                additionalProperties: true,
                description: 'An object with the records. Its other keys are ignored.',
              },
            ),
            items,
          ],
          { description: 'The records, bare or under `batch`.' },
        ),
        {
          batch: { summary: 'Three records', value: { batch: exampleItems } },
          array: { summary: 'A bare array', value: exampleItems },
        },
      ),
      'application/x-ndjson': withExamples(
        Type.String({ description: 'One record a line; blank lines do not count.' }),
        {
          lines: {
            summary: 'Three records',
            value: exampleItems.map((item) => `${JSON.stringify(item)}\n`).join(''),
          },
        },
      ),
    },
  },
  response: {
    200: {
      description: 'The items that are taken are committed in the database; the others are named.',
      content: { 'application/json': { schema: batchResult.ref } },
    },
    ...refusals(
      'invalid_json',
      'missing_field',
      'invalid_field',
      'invalid_metadata_value',
      'upload_too_slow',
      'idempotency_conflict',
      'payload_too_large',
      'too_many_records',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

/** Many records in one request. */
export function batch(scope: FastifyInstance, system: System): void {
  const { ingest, metrics, records, rates } = system;
  const options = { config: { scope: 'ingest' }, schema: batchSchema } as const;
  scope.post('/v1/batch', options, async (request, reply) => {
    try {
      const body = bodyBytes(request);
      const environment = environmentId(request);
      const format = isNdjsonBody(request) ? 'ndjson' : 'json';
      const texts: Buffer[] | null = records.isWatched ? [] : null;
      const read = () => readBatch(body, format, environment, texts);
      const answer = await ingest.batch(environment, read, body.length, readIdempotency(request, body));
      metrics.recordsEnded('batches', 'accepted', answer.accepted);
      metrics.recordsEnded('batches', 'refused', answer.rejected.length);
      rates.add(environment, 'records', answer.accepted);
      rates.add(environment, 'refused', answer.rejected.length);
      if (texts !== null) showItems(records, request, texts, answer);
      return reply.send(answer satisfies BatchAnswer);
    } catch (error) {
      if (records.isWatched) showRecord(records, 'batch', request, error);
      metrics.recordsEnded('batches', error instanceof InputError ? 'refused' : 'failed', 1);
      rates.add(environmentId(request), 'refused', 1);
      throw error;
    }
  });
}

function showItems(
  records: System['records'],
  request: FastifyRequest,
  texts: readonly Buffer[],
  { rejected }: BatchAnswer,
): void {
  const ms = performance.now() - request.startedAt;
  const from = { route: 'batch', requestId: request.id, keyId: callerKeyId(request), ms } as const;
  const refusals = new Map(
    rejected.map(({ index, error_code: code, message }) => [index, { code, message }]),
  );
  for (const [index, body] of texts.entries()) {
    records.take(environmentId(request), { ...from, body, refusal: refusals.get(index) ?? null });
  }
}
