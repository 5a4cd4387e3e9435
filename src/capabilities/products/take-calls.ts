/*
 * Requests from other products' SDKs: the envelope, the key and the response that the SDK expects.
 * A record is committed before it is acknowledged. A key in the body is checked before anything is
 * stored.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { inputError } from '../../base/errors.ts';
import type { System } from '../../context.ts';
import type { Preset } from '../../domain/source.ts';
import { environmentId } from '../../http/caller.ts';
import { readIdempotency } from '../../http/parameters.ts';
import { renderErrors } from '../../http/plugins/errors.ts';
import { beginsAsJson, bodyBytes, isNdjsonBody, readEnvelope } from '../../http/plugins/json-body.ts';
import { flag, item } from '../../http/schema.ts';
import type { BatchFormat } from '../../ingest/read-batch.ts';
import type { CallSeam } from '../../ingest/seam.ts';
import { problemsOf, takeItems } from '../../ingest/take-batch.ts';
import type { BatchAnswer } from '../../ingest/write-batch.ts';
import { type CallContext, callReader, isSegmentCall, readMixedItem } from './read-call.ts';

export type Members = Readonly<Record<string, unknown>>;

export type SdkProduct = Exclude<Preset, 'userpilot'>;

interface Sdk {
  /** Member of the body with the time when the request was sent, by the sender's clock. */
  readonly sentAt: string;
  /**
   * True if one refused record makes the whole request fail. If false, the request fails only if
   * all records are refused.
   */
  readonly isStrict: boolean;
  /**
   * True if a request is stored completely or not at all, because the SDK resends all of its
   * records after a refusal.
   */
  readonly isWhole: boolean;
  /** Returns the body of the response. If `isStrict`, a refusal also contains this body. */
  readonly answer: (request: FastifyRequest, sent: Sent, result: BatchAnswer) => string | object;
}

interface Sent {
  readonly body: Buffer;
  readonly format: BatchFormat;
  /** The body, except the content of its first array. `{}` if the body is an array or NDJSON. */
  readonly envelope: Members;
  readonly key: string;
}

const answerMixpanel: Sdk['answer'] = (request, _, { accepted, rejected }) => {
  const { verbose, strict } = request.query as { readonly verbose?: string; readonly strict?: string };
  const [first] = rejected;
  if (strict === '1') {
    if (first === undefined) return { code: 200, status: 'OK', num_records_imported: accepted };
    return {
      code: 400,
      status: 'Bad Request',
      error: 'some data points in the request failed validation',
      num_records_imported: accepted,
      failed_records: rejected.map(({ index, error_code: field, message }) => ({ index, field, message })),
    };
  }
  const status = first === undefined ? 1 : 0;
  return verbose === '1' ? { status, error: first?.message ?? null } : String(status);
};

const answerAmplitude: Sdk['answer'] = (_, { body }, { accepted, rejected }) => {
  const [first] = rejected;
  if (first === undefined) {
    const sizes = { events_ingested: accepted, payload_size_bytes: body.length };
    return { code: 200, ...sizes, server_upload_time: Date.now() };
  }
  const indexes = rejected.map(({ index }) => index);
  return { code: 400, error: first.message, events_with_invalid_fields: { [first.error_code]: indexes } };
};

export const sdks: Readonly<Record<SdkProduct, Sdk>> = {
  segment: {
    sentAt: 'sentAt',
    isStrict: false,
    isWhole: false,
    answer: (_, { format }, result) => ({ success: true, ...(format !== 'record' && result) }),
  },
  posthog: {
    sentAt: 'sent_at',
    isStrict: false,
    isWhole: false,
    answer: (_, __, result) => ({ status: 1, ...result }),
  },
  mixpanel: { sentAt: 'sent_at', isStrict: true, isWhole: false, answer: answerMixpanel },
  amplitude: { sentAt: 'client_upload_time', isStrict: true, isWhole: true, answer: answerAmplitude },
};

function callContext(request: FastifyRequest, sentAt: unknown): CallContext {
  const receivedAt = Date.now() - (performance.now() - request.startedAt);
  return { environmentId: environmentId(request), receivedAt, sentAt };
}

/**
 * Segment calls to `/v1/identify`, `/v1/track` and `/v1/batch`. These paths also accept records in
 * sluice's format.
 */
export const segmentCalls: CallSeam = {
  description: 'Also takes a call of Segment.',
  answers: {
    200: {
      description: 'The call of Segment is committed.',
      content: { 'application/json': { schema: item({ success: flag('Always true.', true) }) } },
    },
  },
  refuses: ['invalid_date', 'unknown_event_type', 'unsupported_kind', 'suppressed'],
  take: (system, type, body, request, reply) =>
    isSegmentCall(type, body) ? takeCalls(system, () => 'segment', { type }, request, reply) : null,
  readerOf(request, body) {
    const hasTime = body.includes('"sentAt"') && !isNdjsonBody(request);
    const context = callContext(request, hasTime ? readEnvelope(body)['sentAt'] : undefined);
    return (line) => readMixedItem(line, context);
  },
};

export async function takeCalls(
  system: System,
  choose: (envelope: Members) => SdkProduct,
  adds: Members,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const sent = readSent(request);
  const isKeyOfBody = request.caller === null;
  if (isKeyOfBody) await request.server.admitKey(request, reply, sent.key);
  const product = choose(sent.envelope);
  const { sentAt, isStrict, isWhole, answer } = sdks[product];
  const context = callContext(request, sent.envelope[sentAt]);
  // A browser's beacon cannot send its key in a header. Beacons can send records in sluice's format
  // to this route, because it accepts the key in the body.
  const isMixed = product === 'segment' && !('type' in adds);
  const result = await takeItems(system, request, {
    reply,
    ...sent,
    readItem: isMixed
      ? (line) => readMixedItem(line, context)
      : callReader(product, adds, { ...context, token: isKeyOfBody ? sent.key : null }),
    isWhole,
    idempotency: readIdempotency(request, sent.body),
  });
  const body = answer(request, sent, result);
  const problems = problemsOf(result);
  if (problems.length > 0 && (isStrict || result.accepted === 0)) {
    return reply
      .code(400)
      .send({ ...(isStrict && typeof body === 'object' && body), ...renderErrors(problems) });
  }
  if (typeof body === 'string') reply.type('text/plain; charset=utf-8');
  return reply.send(body);
}

function readSent(request: FastifyRequest): Sent {
  const bytes = bodyBytes(request);
  const query = request.query as Readonly<Record<string, unknown>>;
  const isForm = bytes.length > 0 && !beginsAsJson(bytes);
  const form = isForm ? bytes.toString('utf8') : '';
  const queryData = bytes.length === 0 ? query['data'] : null;
  const data = isForm ? formField(form, 'data|identification') : queryData;
  const body = typeof data === 'string' ? decodeData(data) : bytes;
  const isArray = /^\s*\[/.test(body.toString('latin1', 0, 1_000));
  const isLines = isNdjsonBody(request);
  const envelope = isArray || isLines ? {} : readEnvelope(body);
  const jsonFormat = isArray || Array.isArray(envelope['batch']) ? 'batch' : 'record';
  const format = isLines ? 'ndjson' : jsonFormat;
  const key = query['api_key'] ?? formField(form, 'api_key') ?? keyOf(envelope) ?? firstToken(body);
  return {
    body,
    format: Array.isArray(envelope['events']) ? 'events' : format,
    envelope,
    key: typeof key === 'string' ? key : '',
  };
}

function formField(form: string, names: string): string | null {
  const value = new RegExp(`(?:^|&)(?:${names})=([^&]*)`).exec(form)?.[1];
  if (value === undefined) return null;
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch {
    throw inputError('invalid_json', 'The body is neither JSON nor a form that holds it');
  }
}

/** Decodes JSON or base64. Form decoding may have turned each + of the base64 into a space. */
function decodeData(data: string): Buffer {
  return /^\s*[{[]/.test(data) ? Buffer.from(data) : Buffer.from(data.replaceAll(' ', '+'), 'base64');
}

function keyOf({ writeKey, api_key, token, $token, properties }: Members): unknown {
  return writeKey ?? api_key ?? token ?? $token ?? (properties as Members | null | undefined)?.['token'];
}

function firstToken(body: Buffer): string | undefined {
  return /"(?:\$?token|api_key)"\s*:\s*"([^"\\]{1,256})"/.exec(body.toString('latin1'))?.[1];
}
