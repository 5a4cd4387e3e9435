import { STATUS_CODES } from 'node:http';
import type { Example } from '../api/schema.ts';
import { type ErrorCode, errorCodes } from '../domain/errors.ts';

/** A schema, as far as an example depends on it. */
interface Described {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, Described>>;
  readonly items?: Described;
  readonly anyOf?: readonly Described[];
  readonly allOf?: readonly Described[];
}

/** Examples of texts, by format. */
const texts: Readonly<Record<string, string>> = {
  'date-time': '2026-11-20T11:58:59.562Z',
  uri: 'https://sluice.example.com/',
  uuid: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
};

/**
 * Makes a value that a schema describes from the examples of its parts. So an answer needs no example of its own, and a new field is in
 * its example too. Tests hold every example to its schema.
 */
export function exampleOf(schema: Described, schemas: Readonly<Record<string, object>>): unknown {
  const { $ref, examples, anyOf, allOf, properties = {}, items, minimum = 0 } = schema;
  const of = (part: Described) => exampleOf(part, schemas);
  if ($ref !== undefined) return of((schemas[$ref.split('/').at(-1) ?? ''] ?? {}) as Described);
  if (examples !== undefined) return examples[0];
  if ('const' in schema) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const [first] = anyOf ?? allOf ?? [];
  if (first !== undefined) return of(first);
  switch ([schema.type].flat()[0]) {
    case 'object':
      return Object.fromEntries(Object.entries(properties).map(([name, part]) => [name, of(part)]));
    case 'array':
      return items === undefined ? [] : [of(items)];
    case 'integer':
    case 'number':
      return minimum;
    case 'boolean':
      return false;
    case 'string':
      return texts[schema.format ?? ''] ?? '';
    default:
      return null;
  }
}

const jobDetails = 'job_id: 01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';

/** An example of a message and details for each code. */
const errorTexts: Readonly<Record<ErrorCode, readonly [message: string, details: string]>> = {
  invalid_json: ['The body is not JSON', 'Unexpected end of JSON input'],
  missing_field: ['user_id is missing', 'user_id'],
  invalid_field: ['limit is a whole number from 1 to 200', 'limit'],
  invalid_metadata_value: ['metadata is nested too deep', 'metadata'],
  invalid_date: ['since is YYYY-MM-DD or an ISO 8601 instant', 'since'],
  invalid_range: ['from lies after to, or after this moment where there is no to', 'from'],
  empty_file: ['The file is empty', ''],
  unrecognised_columns: [
    'the header names no user_id or company_id column; name one, or map one with map=Their Header=user_id',
    'Customer No, Mail',
  ],
  unsupported_format: ['The request says that its body is gzip, but it is not', ''],
  invalid_cursor: ['A cursor is taken, unchanged, from the page before', 'cursor'],
  unknown_segment: ['There is no such segment', 'segment_id: 99'],
  unknown_event_type: [
    'This is neither users, companies, events nor the key of an event or feature',
    'event_type: report_exprted',
  ],
  invalid_api_key: ['Unauthorized - Invalid API key', 'the header Authorization: Token <API_KEY>'],
  insufficient_scope: ['The key does not allow this', 'needed: import; the key has: read'],
  not_found: ['there is no such job', jobDetails],
  route_not_found: ['There is no such address; /docs shows those there are', 'GET /v1/import'],
  method_not_allowed: ['PUT is not allowed here', 'allowed: POST'],
  upload_too_slow: ['The upload has stalled', 'nothing came for 60000 ms'],
  job_not_cancellable: ['the job is completed already', jobDetails],
  job_not_retryable: ['the job is completed', jobDetails],
  job_not_appliable: ['the job is no plan', jobDetails],
  plan_already_applied: ['the plan was applied already', jobDetails],
  job_not_amendable: ['the job is processing; refused records are mended when it is completed', jobDetails],
  already_amended: [
    'refused rows are mended once, and others are mending these, or have: 17, 18',
    jobDetails,
  ],
  count_changed: [
    'the filter matches another number of jobs now; look again',
    'count: 12, expected_count: 10',
  ],
  idempotency_conflict: [
    'this Idempotency-Key was used for another request in the last 24 hours',
    'Idempotency-Key',
  ],
  duplicate_file: ['the same file was loaded before', jobDetails],
  offset_conflict: [
    'The upload does not end where this request begins; ask where it ends, and go on from there',
    'Upload-Offset: 524288',
  ],
  upload_incomplete: [
    'The file has not come whole; send the rest first',
    '524288 of 1048576 bytes have come',
  ],
  link_expired: ['The link has expired; ask for the job to get a new one', 'expires'],
  job_expired: ['the file of this job has expired; send it again', jobDetails],
  unsupported_version: ['Uploads speak version 1.0.0 of the tus protocol', 'Tus-Resumable: 0.2.2'],
  payload_too_large: ['A record may have 1048576 bytes', 'the request body'],
  too_many_records: ['A deletion takes 10000 ids', 'users'],
  unsupported_media_type: ['Send JSON, with Content-Type: application/json', 'Content-Type: text/plain'],
  range_not_satisfiable: ['The file has no such part', 'it has 84213 bytes'],
  headers_too_large: ['The headers of the request are too large', 'send fewer or shorter headers'],
  rate_limited: ['This key makes too many requests; try again later', '600 requests in 60000 ms'],
  internal_error: ['The service failed; the error is in its log under the request id', ''],
  unavailable: ['The service is overloaded; try again later', ''],
};

/** Makes the error record with one problem of this code. */
export function errorExample(code: ErrorCode | undefined): Readonly<Record<string, Example>> {
  if (code === undefined) return {};
  const [message, details] = errorTexts[code];
  const error = STATUS_CODES[errorCodes[code]];
  return {
    [code]: { summary: message, value: { errors: [{ error, error_code: code, message, details }] } },
  };
}
