import type { FastifyReply, FastifyRequest } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { type ErrorCode, InputError } from '../base/errors.ts';
import { MAX_BATCH_BYTES } from '../base/limits.ts';
import type { System } from '../context.ts';
import { environmentId } from '../http/caller.ts';
import { bodyHeaders, readIdempotency } from '../http/parameters.ts';
import { bodyBytes, isNdjsonBody } from '../http/plugins/json-body.ts';
import { directRoute, type Route, route } from '../http/route.ts';
import { type Example, exampleText, listOf, withExamples } from '../http/schema.ts';
import type { Idempotency } from '../tasks/idempotency.ts';
import { batchItem, batchResult, identifyBody, identifyCompanyBody, trackBody } from './api.ts';
import { type Fields, openRecord } from './fields.ts';
import { MAX_BATCH_ITEMS, readItem } from './read-batch.ts';
import { readCompany, readEvent, readUser } from './read-record.ts';
import type { IngestEntity } from './records.ts';
import type { CallSeam } from './seam.ts';
import { refuseIfNothing, sayDropped, takeItems } from './take-batch.ts';

// `read-record.ts` reads single records. Their schemas are only documentation. For an event of 190
// bytes on Node 20, `readEvent` takes 5.1 µs, of which JSON.parse takes 1.1 µs. A compiled schema
// would add 0.09 µs, or 7.4 µs for a refused event. A schema cannot check bytes, U+0000, lone
// surrogates and rounded numbers.

interface RecordRoute<T> {
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly name: 'identify' | 'company' | 'track';
  readonly entity: IngestEntity;
  readonly body: TSchema;
  readonly examples: Readonly<Record<string, Example>>;
  readonly refuses?: readonly ErrorCode[];
  readonly read: (fields: Fields, environmentId: number) => T;
  readonly commit: (ingest: System['ingest'], record: T, idempotency: Idempotency | null) => Promise<void>;
}

const recordRoute =
  <T>(options: RecordRoute<T>) =>
  (calls: CallSeam | null): Route => {
    const { path, operationId, summary, body, examples } = options;
    const { answers = {}, refuses = [] } = calls ?? {};
    const description = options.description + (calls === null ? '' : ` ${calls.description}`);
    return directRoute(
      {
        at: `POST ${path}` as 'POST /',
        operationId,
        summary,
        description,
        access: 'ingest',
        bodyKind: 'json',
        headers: bodyHeaders,
        content: { 'application/json': withExamples(body, examples) },
        answer: {
          status: 202,
          description: 'The record is committed in the database. The body is empty.',
          headers: ['Sluice-Dropped-Properties'],
        },
        answers,
        refuses: ['invalid_metadata_value', 'breaks_rule', ...(options.refuses ?? []), ...refuses],
      },
      (system) => (request, reply) => commitRecord(system, options, calls, request, reply),
    );
  };

function commitRecord<T>(
  system: System,
  { name, entity, read, commit }: RecordRoute<T>,
  calls: CallSeam | null,
  request: FastifyRequest,
  reply: FastifyReply,
): unknown {
  const { ingest, metrics, rates } = system;
  const fail = (error: unknown): void => {
    metrics.recordsEnded(entity, error instanceof InputError ? 'refused' : 'failed', 1);
    rates.add(environmentId(request), { rejected: 1 });
    reply.send(error);
  };
  let committed: Promise<void>;
  try {
    const body = bodyBytes(request);
    const fields = openRecord(body);
    const foreignReply = calls?.take(system, name, fields.object, request, reply) ?? null;
    if (foreignReply !== null) return foreignReply;
    const record = read(fields, environmentId(request));
    sayDropped(reply, fields.dropped);
    committed = commit(ingest, record, readIdempotency(request, body));
  } catch (error) {
    return fail(error);
  }
  committed.then(() => {
    metrics.recordsEnded(entity, 'accepted', 1);
    rates.add(environmentId(request), { accepted: 1 });
    reply.code(202).send();
  }, fail);
}

const identify = recordRoute({
  path: '/v1/identify',
  operationId: 'identifyUser',
  summary: 'Identify a user',
  description:
    'Merges properties into the stored user, and sets the company of the user. Answers once the record is committed.',
  name: 'identify',
  entity: 'users',
  body: identifyBody,
  examples: {
    user: {
      summary: 'A user with a company',
      value: {
        user_id: 'u1',
        metadata: { name: 'Ada Lovelace', plan: 'pro', logins: 7, trial_ends_at: null },
        company: { company_id: 'acme', name: 'Acme GmbH', size: 120 },
      },
    },
    leaves: { summary: 'A user who leaves the company', value: { user_id: 'u1', company: null } },
  },
  read: readUser,
  commit: (ingest, record, idempotency) => ingest.identifyUser(record, idempotency),
});

const identifyCompany = recordRoute({
  path: '/v1/companies/identify',
  operationId: 'identifyCompany',
  summary: 'Identify a company',
  description: 'Merges properties into the stored company. Answers once the record is committed.',
  name: 'company',
  entity: 'companies',
  body: identifyCompanyBody,
  examples: {
    company: {
      summary: 'A company',
      value: {
        company_id: 'acme',
        metadata: { name: 'Acme GmbH', size: 120, industry: 'Tools', old_name: null },
      },
    },
  },
  read: readCompany,
  commit: (ingest, record, idempotency) => ingest.identifyCompany(record, idempotency),
});

const track = recordRoute({
  path: '/v1/track',
  operationId: 'trackEvent',
  summary: 'Track an event',
  description: 'Stores one event of a user. Answers once the record is committed.',
  name: 'track',
  entity: 'events',
  body: trackBody,
  examples: {
    event: {
      summary: 'An event that happens now',
      value: {
        user_id: 'u1',
        event_name: 'report_exported',
        metadata: { format: 'csv', rows: 1200, filters: ['plan'] },
      },
    },
    backdated: {
      summary: 'An earlier event that is safe to send again',
      value: {
        user_id: 'u1',
        event_name: 'logged_in',
        event_id: '5f0c6a4e',
        inserted_at: '2026-11-20T12:34:56.123456Z',
      },
    },
  },
  refuses: ['invalid_date'],
  read: readEvent,
  commit: (ingest, record, idempotency) => ingest.track(record, idempotency),
});

const items = listOf('The records, in order.', batchItem.ref, { maxItems: MAX_BATCH_ITEMS });

const exampleItems = [
  { type: 'identify', user_id: 'u1', metadata: { plan: 'pro' }, company: { company_id: 'acme' } },
  { type: 'track', user_id: 'u1', event_name: 'signed_up', event_id: '5f0c6a4e', metadata: { via: 'ads' } },
  { type: 'company', company_id: 'acme', metadata: { industry: 'tools' } },
];

const batchOfItems = Type.Object(
  { batch: items },
  { additionalProperties: true, description: 'An object with the records. Its other keys are ignored.' },
);

const batch = (calls: CallSeam | null) =>
  route({
    at: 'POST /v1/batch',
    operationId: 'sendBatch',
    summary: 'Send a batch of records',
    description: `Identifies users and companies and tracks events: at most ${MAX_BATCH_ITEMS} records in ${MAX_BATCH_BYTES / 1024 / 1024} MiB. Items are checked one by one. All accepted items are committed in one transaction, in order, before the answer is sent: the later record wins, also over a newer \`inserted_at\`.`,
    access: 'ingest',
    bodyKind: 'batch',
    headers: bodyHeaders,
    content: {
      'application/json': withExamples(
        Type.Union([batchOfItems, items], { description: 'The records, bare or under `batch`.' }),
        {
          batch: { summary: 'Three records', value: { batch: exampleItems } },
          array: { summary: 'A bare array', value: exampleItems },
        },
      ),
      'application/x-ndjson': exampleText(
        'One record per line; blank lines are ignored.',
        'lines',
        'Three records',
        exampleItems.map((item) => `${JSON.stringify(item)}\n`).join(''),
      ),
    },
    answer: {
      description: 'The accepted items are committed in the database; the refused ones are listed.',
      headers: ['Sluice-Dropped-Properties'],
      schema: batchResult.ref,
    },
    refuses: [
      'invalid_metadata_value',
      'breaks_rule',
      'too_many_records',
      'invalid_date',
      'unknown_event_type',
      'unsupported_kind',
    ],
    handle: async ({ system, request, reply, environment }) => {
      const body = bodyBytes(request);
      const readRecord = (line: Buffer) => readItem(openRecord(line, 'The item'), environment);
      const answer = await takeItems(system, request, {
        reply,
        body,
        format: isNdjsonBody(request) ? 'ndjson' : 'batch',
        readItem: calls?.readerOf(request, body) ?? readRecord,
        idempotency: readIdempotency(request, body),
      });
      refuseIfNothing(answer);
      return answer;
    },
  });

export function recordRoutes(calls: CallSeam | null): readonly Route[] {
  return [identify(calls), identifyCompany(null), track(calls), batch(calls)];
}
