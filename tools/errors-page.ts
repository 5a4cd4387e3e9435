/**
 * Renders docs/errors.md: meaning and cure of each code. A code without its texts does not compile.
 */
import { type ErrorCode, errorCodes } from '../src/base/errors.ts';
import { MAX_COLUMNS, MAX_HEADER_BYTES, MAX_MAPPED_COLUMNS } from '../src/base/limits.ts';
import { type RejectCode, rejectCodes } from '../src/domain/reject.ts';
import { MAX_EXCLUSION_PATTERNS, MAX_EXCLUSIONS } from '../src/export/read-request.ts';
import { MAX_CELL_CHARS, MAX_SHARED_TEXT_BYTES } from '../src/formats/sheet-cells.ts';
import { MAX_SHEETS } from '../src/formats/workbook.ts';
import { MAX_ZIP_MEMBERS } from '../src/formats/zip.ts';
import { MAX_REFUSED_AT_FIRST } from '../src/load/chunk-store.ts';
import { MAX_BLANK_BYTES } from '../src/load/receive/csv-opening.ts';
import { INFLATE_RATIO_GRACE_BYTES, MAX_INFLATE_RATIO } from '../src/load/receive/unpack.ts';
import { table } from './markdown.ts';

type Texts = readonly [meaning: string, cure: string];

const ofMessage = 'Follow the message, which names the place.';
const newExport = 'Export everything without `since`, and continue with the new cursor.';

const requests: Readonly<Record<ErrorCode, Texts>> = {
  invalid_json: ['The body is missing, or is not valid JSON.', ofMessage],
  missing_field: ['A required field is missing or empty.', 'Send the field of `details`.'],
  invalid_field: ['A field, a parameter, an option or a header has a value that is not allowed.', ofMessage],
  invalid_metadata_value: [
    'A property cannot be stored.',
    'Obey the [limits of a record](files.md#limits-of-a-record).',
  ],
  invalid_date: ['A time is not ISO 8601, or is out of range.', 'Send a time from 2000 to one day from now.'],
  invalid_range: ['The range ends before it begins.', 'Correct `from` and `to`.'],
  empty_file: ['The file has no record.', 'Send at least one record after the header.'],
  unrecognised_columns: [
    'No column or key is `user_id` or `company_id`.',
    'Name the id with `map`, or the product with `preset`.',
  ],
  unsupported_format: [
    'The format of the file cannot be read, or is ambiguous.',
    'Send the [option](files.md) of the message.',
  ],
  invalid_cursor: ['The cursor is not one of this list.', 'Send the cursor unchanged, or start without it.'],
  unknown_segment: ['The environment has no such segment.', 'List the segments with the lookup `segments`.'],
  unknown_event_type: [
    'The environment has no event of this name, or the record is of an unknown kind.',
    'Correct `event_type`.',
  ],
  unsupported_kind: [
    'The record removes a profile or joins two users, which no record can do.',
    '[Delete](deletion.md) profiles by ID, and send one ID per user.',
  ],
  breaks_rule: [
    'A value, or the name of an event, breaks a rule.',
    'Correct it, or change the [rules](rules.md).',
  ],
  suppressed: ['The person is kept out.', 'Lift the [suppression](deletion.md#keeping-a-person-out).'],
  invalid_api_key: ['The key is missing, unknown, revoked or expired.', 'Send a valid key.'],
  insufficient_scope: ['The key lacks the scope, or the call is for administrators.', 'Use another key.'],
  not_found: ['The environment has no such resource.', 'Check the ID, and the environment of the key.'],
  route_not_found: [
    'No route has this path.',
    'Compare the path with the [HTTP interface](api.md#endpoints).',
  ],
  method_not_allowed: ['The path does not support the method.', 'Use a method of the header `Allow`.'],
  upload_too_slow: ['The upload stalled, or the client left.', 'Send the request again.'],
  job_not_cancellable: ['The job has ended, or is a deletion.', 'None.'],
  job_not_retryable: ['The job has not failed, or its file is not kept.', 'Send the file again.'],
  job_not_held: ['The job is not held by a guard.', 'None.'],
  job_not_appliable: ['The job is not a completed plan.', 'Load the file with `plan=true`.'],
  plan_already_applied: ['The plan was applied before.', 'Plan the file again.'],
  job_not_undoable: ['The job is not an ended load, or was undone before.', 'None.'],
  definition_locked: [
    'The segment is protected, or is in the definitions file.',
    'Set `is_protected` to false, or change the file.',
  ],
  segment_exists: ['Another segment has this key or title.', 'Choose another one.'],
  idempotency_conflict: [
    'Another request had this `Idempotency-Key` in the last 24 hours.',
    'Use a new key for a new request.',
  ],
  duplicate_file: [
    'The same bytes were or are being loaded, and `if_duplicate` is `reject`.',
    'Send `if_duplicate=load` to load them again.',
  ],
  cursor_expired: [
    'The changes since the cursor are not kept any more, or were lost in a restore.',
    newExport,
  ],
  link_expired: ['The link or its key has expired.', 'Fetch the job again for new links.'],
  job_expired: ['The file or the changes of the job are not kept any more.', 'Send the file again.'],
  payload_too_large: ['The body, or its unpacked content, is too large.', 'Send less at a time.'],
  too_many_records: ['The request has too many records or IDs.', 'Send less at a time.'],
  unsupported_media_type: ['The route does not take this `Content-Type`.', 'Send one of the reference.'],
  range_not_satisfiable: ['The file is shorter than the range.', 'Start within the size of the file.'],
  rate_limited: [
    'Too many requests, unfinished jobs or bytes are in progress.',
    'Send the request again after `Retry-After`.',
  ],
  headers_too_large: ['The headers are too large.', 'Send fewer or shorter headers.'],
  internal_error: ['A bug of sluice.', 'Report it with the `x-request-id`.'],
  unavailable: [
    'The database, the storage or the server is unavailable.',
    'Send the request again after `Retry-After`.',
  ],
};

const records: Readonly<Record<RejectCode, Texts>> = {
  missing_id: ['No `user_id` or `company_id`, or an empty one.', 'Fill it in, or map its column with `map`.'],
  invalid_id: [
    'The ID is neither a string nor a whole number, or two IDs of a company differ.',
    'Send one string.',
  ],
  id_too_long: ['The ID has more than 256 bytes of UTF-8.', 'Shorten the ID everywhere.'],
  wrong_field_count: [
    'The CSV record has more or fewer cells than the header.',
    'Correct it, or send `ragged=pad`.',
  ],
  invalid_quote: [
    'A quote is inside an unquoted cell, or text follows a closing quote.',
    'Quote the whole cell, or send `quote=none`.',
  ],
  unclosed_quote: ['A quoted cell is never closed. Only its first line is refused.', 'Close the quote.'],
  invalid_escape: [
    'A backslash precedes a character that needs no escape, or ends the record.',
    'Double the backslash, or send `escape=none`.',
  ],
  repeated_header: ['The CSV record is the header again.', 'None is necessary.'],
  record_too_large: ['The record is longer than 1 MiB, or has more than 10 000 properties.', 'Split it.'],
  value_too_large: ['A value is longer than 64 KiB.', 'Shorten it.'],
  invalid_utf8: ['The record has bytes that are not UTF-8.', 'Send the `encoding` of the file.'],
  nul_character: ['The record has U+0000, which PostgreSQL cannot store.', 'Remove it.'],
  lone_surrogate: ['The record has half of a surrogate pair.', 'Remove it.'],
  invalid_json: ['The line, or the cell of a column `metadata`, is not JSON.', 'Correct the JSON.'],
  not_an_object: ['The line is JSON, but not an object.', 'Send an object per line.'],
  invalid_type: [
    '`metadata` or `company` is not an object, or a cell is not of its type.',
    'Correct it or `types`.',
  ],
  invalid_property_name: ['A property has a name of more than 255 characters.', 'Rename it.'],
  forbidden_property: ['A property is `__proto__`, `constructor` or `prototype`.', 'Rename it.'],
  too_deep: ['The record is nested deeper than 32 levels.', 'Flatten it, or send the inner part as text.'],
  number_out_of_range: [
    'A number has a power of ten beyond 1000, or more than 20 000 digits.',
    'Send a string.',
  ],
  unknown_event_type: [
    'sluice does not know this `event_type`.',
    'Correct it, or map it to `metadata.event_type`.',
  ],
  unexpected_event_row: ['The job does not take this `event_type`.', 'Send the record to `/v1/imports`.'],
  missing_event_name: ['A `track` record has no `event_name`.', 'Add it.'],
  invalid_date: [
    'A time is neither ISO 8601 nor seconds or milliseconds since 1970, or is before 2000 or more than a day ahead.',
    'Correct it.',
  ],
  unsupported_kind: requests.unsupported_kind,
  breaks_rule: requests.breaks_rule,
  suppressed: ['The person is kept out. The text of the record is not kept.', requests.suppressed[1]],
  refused_by_database: [
    'PostgreSQL refused the record. The message is from PostgreSQL.',
    'Follow the message.',
  ],
  changed_since: ['The undo keeps a value that was changed after the undone job.', 'Change it by hand.'],
};

const sendCorrected = 'Correct the file and send it again.';
const accept = '`retry` accepts the excess.';

const jobs: readonly (readonly [codes: string, meaning: string, cure: string])[] = [
  ['`too_many_rejects`', 'More records were refused than `max_errors` allows. Nothing was written.', accept],
  [
    '`guard_exceeded`',
    'More would change or be removed than `max_changed` or `max_removed_values` allows. Nothing was written.',
    accept,
  ],
  [
    '`hold_expired`',
    'Nobody decided about a held load within `FILE_RETENTION_DAYS`.',
    'Send the file again.',
  ],
  ['`plan_drifted`', 'Profiles have changed since the plan. Nothing was written.', '`retry` plans again.'],
  ['`all_records_refused`', 'Every record was refused. The message has the likely reason.', sendCorrected],
  [
    '`first_records_refused`',
    `The first ${MAX_REFUSED_AT_FIRST} records, or a few more, were all refused. Nothing was written, and the rest was not read.`,
    '`retry`, or a load with `max_errors`, reads the rest.',
  ],
  [
    '`job_expired`',
    'The changes that the undo needs are not kept any more (`CHANGES_DAYS`), or a deletion took the file of a held load.',
    'None.',
  ],
  [
    '`begin_failed`, `chunk_failed`, `finish_failed`, `export_failed`, `deletion_failed`',
    'An error did not pass. The message has it.',
    'Remove the cause, then `retry`.',
  ],
  [
    '`database_timeout`',
    'PostgreSQL ended the work ten times in a row.',
    'Raise `statement_timeout` or `transaction_timeout` of the role.',
  ],
  [
    '`worker_lost`',
    'The work repeatedly lost its worker.',
    'Find the reason in the log of the workers, then `retry`.',
  ],
  [
    '`unknown_segment`',
    'The segment was removed, or cannot be read.',
    'Correct the segment, and export again.',
  ],
  ['`export_timeout`', 'The export took longer than 12 hours.', 'Request less at a time.'],
];

export function errorsPage(): string {
  const head = ['error_code', 'status', 'meaning', 'cure'];
  const requestRows = Object.entries(errorCodes).map(([code, status]) => [
    `\`${code}\``,
    String(status),
    ...requests[code as ErrorCode],
  ]);
  const recordRows = rejectCodes.map((code) => [`\`${code}\``, ...records[code]]);
  return `# Errors

Generated from \`src/base/errors.ts\` and \`src/domain/reject.ts\` by \`npm run generate:docs\`.

## Requests that are refused

The body is \`{"errors":[{"error","error_code","message","details"}]}\` with an entry per problem, up to 100: the status
phrase, one of these codes, a message for a person, the place.

${table(head, requestRows)}

## Records that are refused

A refused record does not fail its load, unless all are refused. [Rejects](loads.md#rejects) report it.

${table(['error_code', 'meaning', 'cure'], recordRows)}

## Bounds of a request

| what | at most | else |
|---|---|---|
| blank lines before the header of a CSV | ${MAX_BLANK_BYTES / 1024} KiB | 400 \`invalid_field\` |
| the header of a CSV | ${MAX_HEADER_BYTES / 1024 ** 2} MiB, ${MAX_COLUMNS} columns | 400 \`invalid_field\` |
| columns that \`map\` names | ${MAX_MAPPED_COLUMNS} | 400 \`invalid_field\` |
| growth of compressed data beyond ${INFLATE_RATIO_GRACE_BYTES / 1024 ** 2} MiB | ${MAX_INFLATE_RATIO} times the sent size | 413 \`payload_too_large\` |
| members of a ZIP archive | ${MAX_ZIP_MEMBERS} | 400 \`unsupported_format\` |
| of a workbook: sheets, text that cells share, characters of a cell | ${MAX_SHEETS}, ${MAX_SHARED_TEXT_BYTES / 1024 ** 2} MiB, ${MAX_CELL_CHARS} | 400 \`unsupported_format\` |
| properties of a single record, its depth, the digits of a number | as in a file, above | 400 \`invalid_metadata_value\` |
| terms of an export's \`exclusions\`, of these with a \`*\` | ${MAX_EXCLUSIONS}, ${MAX_EXCLUSION_PATTERNS} | 400 \`invalid_field\` |

## Jobs that fail

${table(['failure.error_code', 'meaning', 'cure'], jobs)}

While a job is retried by itself, \`last_error\` has the error of the last attempt.

- **Loads**: rows that were applied before stay, and the message has their number. \`retry\` loads the rest.
- **Exports**: nothing is kept. Request the export again.
- **Deletions**: what was deleted stays deleted. \`outcomes\` shows which IDs are \`pending\`: request their deletion again.
`;
}
