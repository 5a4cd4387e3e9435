import { STATUS_CODES } from 'node:http';
import { errorCodes } from '../src/domain/errors.ts';
import {
  INFLATE_RATIO_GRACE_BYTES,
  MAX_BLANK_BYTES,
  MAX_COLUMNS,
  MAX_EXCLUSION_PATTERNS,
  MAX_EXCLUSIONS,
  MAX_HEADER_BYTES,
  MAX_INFLATE_RATIO,
  MAX_MAPPED_COLUMNS,
} from '../src/domain/limits.ts';
import { rejectCodes } from '../src/domain/reject.ts';
import { settings } from '../src/settings.ts';

const rejectMeanings: Readonly<Record<(typeof rejectCodes)[number], string>> = {
  missing_id: 'No `user_id` or `company_id`, or an empty one.',
  invalid_id: 'The id is neither a string nor a number.',
  id_too_long: 'The id has more than 256 bytes of UTF-8.',
  wrong_field_count: 'The CSV record has more or fewer cells than the header.',
  invalid_quote: 'A quote inside an unquoted cell, or something behind a closing quote. Costs that record.',
  unclosed_quote:
    'A quoted cell is never properly closed. Costs the line it opens on; reading goes on with the next.',
  record_too_large: 'The record is longer than 1 MiB, or has more than 10 000 properties.',
  value_too_large: 'A value is longer than 64 KiB.',
  invalid_utf8: 'The record holds bytes that are not UTF-8.',
  nul_character: 'U+0000, which PostgreSQL cannot store.',
  lone_surrogate: 'Half of a surrogate pair, which is no character.',
  invalid_json: 'The line, or a cell in a column `metadata`, is not JSON.',
  not_an_object: 'The line is JSON, but no object.',
  invalid_type: '`metadata` or `company` is not an object.',
  invalid_property_name: 'A property name is empty or longer than 255 characters.',
  forbidden_property: '`__proto__`, `constructor` or `prototype` as a property name.',
  too_deep: 'Nested deeper than 32 levels.',
  number_out_of_range: 'A number with a power of ten beyond 1000, or of more than 20 000 digits.',
  refused_by_database:
    'Passed every check and was refused by PostgreSQL all the same; the message is its own.',
};

export function errorsPage(): string {
  const codes = Object.entries(errorCodes).map(
    ([code, status]) => `| ${status} ${STATUS_CODES[status]} | \`${code}\` |`,
  );
  const rejects = rejectCodes.map((code) => `| \`${code}\` | ${rejectMeanings[code]} |`);
  return `# Errors

Generated from \`src/domain/errors.ts\` and \`src/domain/reject.ts\` by \`npm run generate:docs\`.

## Requests that are refused

The body is \`{"errors":[{"error","error_code","message","details"}]}\`: one entry per problem found; \`error\` is the
status phrase, \`error_code\` one of this list, \`message\` a sentence, \`details\` the place.

| status | error_code |
|---|---|
${codes.join('\n')}

408, 429 and 503 may be sent again; 429 and 503 say when in \`Retry-After\`.

## Records that are refused

A bad record never fails its load, unless all are bad: it is counted in \`counts.rejected\` and reported by \`GET /v1/background_jobs/{job_id}/rejects\`
with row, line, byte offset, column, code, message and the raw record.

| error_code | meaning |
|---|---|
${rejects.join('\n')}

## Bounds of a request

| what | at most | else |
|---|---|---|
| blank lines before the header of a CSV | ${MAX_BLANK_BYTES / 1024} KiB | 400 \`invalid_field\` |
| the header of a CSV | ${MAX_HEADER_BYTES / 1024 ** 2} MiB, ${MAX_COLUMNS} columns | 400 \`invalid_field\` |
| columns that \`map\` names | ${MAX_MAPPED_COLUMNS} | 400 \`invalid_field\` |
| growth of what comes as gzip, a form around the file included, beyond ${INFLATE_RATIO_GRACE_BYTES / 1024 ** 2} MiB | ${MAX_INFLATE_RATIO} times what was sent | 413 \`payload_too_large\` |
| properties of a single record, its depth, the digits of a number | as in a file, above | 400 \`invalid_metadata_value\` |
| terms of an export's \`exclusions\`, of these with a \`*\` | ${MAX_EXCLUSIONS}, ${MAX_EXCLUSION_PATTERNS} | 400 \`invalid_field\` |

## Loads that fail

\`failure.error_code\` of a job: \`too_many_rejects\` (\`max_errors\` was passed), \`all_records_refused\` (there is no
record that was not refused; the message tells the likely reason), \`chunk_failed\` and \`finish_failed\` (an error
that did not pass; the message tells it), \`database_timeout\` (ten times in a row \`statement_timeout\` of the database role, or
PostgreSQL 17's \`transaction_timeout\`, ended a chunk or the finish), \`worker_lost\` (a chunk, or the finish, lost its worker
again and again). What was applied before stays and is told in the message; \`retry\` goes on with what is left, but after
\`all_records_refused\`, where nothing is left: mend the file and send it anew. That of a dry run fails the same way.

As long as a job of any kind is tried again, \`last_error\` of its detail tells what the last try ran into.

## Exports that fail

\`failure.error_code\`: \`export_failed\` (an error that did not pass; the message tells it), \`unknown_segment\` (a segment
was removed, or cannot be read, before the export began), \`database_timeout\` (as above), \`worker_lost\` (the export lost its worker again and again),
\`export_timeout\` (it took longer than \`EXPORT_TIMEOUT_MINUTES\`; ask for less at a time). Nothing of a failed export is kept; ask for it anew.

## Deletions that fail

\`failure.error_code\`: \`deletion_failed\` (an error that did not pass; the message tells it), \`database_timeout\` (as above), \`worker_lost\` (the deletion
lost its worker again and again and got no further). What was deleted before stays deleted, and \`outcomes\` says which ids are \`pending\`:
ask for them anew.
`;
}

export function configurationPage(): string {
  const rows = Object.values(settings).map(
    ({ name, fallback, meaning }) =>
      `| \`${name}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${meaning} |`,
  );
  return `# Configuration

Generated from \`src/settings.ts\` by \`npm run generate:docs\`. Settings come from the environment; \`sluice --help\` tells
which of them have a flag. A bad value stops the start with a message that names the setting and its rule. Each can be given
by a file instead, as secrets of containers are: \`NAME_FILE\` names the file whose content is the value.

| variable | default | meaning |
|---|---|---|
${rows.join('\n')}
`;
}
