import { STATUS_CODES } from 'node:http';
import { errorCodes } from '../src/base/errors.ts';
import { MAX_COLUMNS, MAX_HEADER_BYTES, MAX_MAPPED_COLUMNS } from '../src/base/limits.ts';
import { settings } from '../src/base/settings.ts';
import { rejectCodes } from '../src/domain/reject.ts';
import { MAX_EXCLUSION_PATTERNS, MAX_EXCLUSIONS } from '../src/export/read-request.ts';
import { MAX_CELL_CHARS, MAX_SHARED_TEXT_BYTES } from '../src/formats/sheet-cells.ts';
import { MAX_SHEETS } from '../src/formats/workbook.ts';
import { MAX_ZIP_MEMBERS } from '../src/formats/zip.ts';
import { MAX_REFUSED_AT_FIRST } from '../src/load/chunk-store.ts';
import { MAX_BLANK_BYTES } from '../src/load/receive/csv-opening.ts';
import { INFLATE_RATIO_GRACE_BYTES, MAX_INFLATE_RATIO } from '../src/load/receive/unpack.ts';

const rejectMeanings: Readonly<Record<(typeof rejectCodes)[number], string>> = {
  missing_id: 'No `user_id` or `company_id`, or an empty one.',
  invalid_id:
    'The id is neither a string nor a whole number, or two ids of one company contradict each other.',
  id_too_long: 'The id has more than 256 bytes of UTF-8.',
  wrong_field_count: 'The CSV record has more or fewer cells than the header.',
  invalid_quote: 'A quote inside an unquoted cell, or text after a closing quote.',
  unclosed_quote: 'A quoted cell is never closed. Only the line on which it begins is refused.',
  invalid_escape: 'A backslash that escapes stands before a character that needs none, or at the end.',
  repeated_header: 'The CSV record is the header again. There is nothing to correct.',
  record_too_large: 'The record is longer than 1 MiB, or has more than 10 000 properties.',
  value_too_large: 'A value is longer than 64 KiB.',
  invalid_utf8: 'The record holds bytes that are not UTF-8.',
  nul_character: 'U+0000, which PostgreSQL cannot store.',
  lone_surrogate: 'Half of a surrogate pair.',
  invalid_json: 'The line, or a cell in a column `metadata`, is not JSON.',
  not_an_object: 'The line is JSON, but not an object.',
  invalid_type: '`metadata` or `company` is not an object.',
  invalid_property_name: 'A property name is longer than 255 characters, or a column has none.',
  forbidden_property: '`__proto__`, `constructor` or `prototype` as a property name.',
  too_deep: 'Nested deeper than 32 levels.',
  number_out_of_range: 'A number with a power of ten beyond 1000, or of more than 20 000 digits.',
  unknown_event_type: '`event_type` is none that sluice knows.',
  unexpected_event_row:
    '`event_type` is of another kind than the job takes, such as an event sent to `bulk_identify`.',
  missing_event_name: 'A `track` record has no `event_name`.',
  invalid_date:
    '`inserted_at` is neither ISO 8601 nor seconds or milliseconds since 1970, or lies before 2000 or more than a day ahead.',
  unsupported_kind:
    'The record removes a profile, or joins two users. A file does neither: delete profiles by ID, and send one ID per user.',
  breaks_rule: 'A value, or the name of an event, breaks a rule of the environment: [rules](rules.md).',
  suppressed:
    'The person is [kept out](deletion.md#keeping-a-person-out). The text of the record is not kept.',
  refused_by_database: 'PostgreSQL refused it; the message is from PostgreSQL.',
  changed_since: 'An undo keeps this: somebody else has changed it after the undone job.',
};

export function errorsPage(): string {
  const all = Object.entries(errorCodes);
  const codes = [...new Set(all.map(([, status]) => status))].map((status) => {
    const those = all.filter(([, each]) => each === status).map(([code]) => `\`${code}\``);
    return `| ${status} ${STATUS_CODES[status]} | ${those.join(', ')} |`;
  });
  const rejects = rejectCodes.map((code) => `| \`${code}\` | ${rejectMeanings[code]} |`);
  return `# Errors

Generated from \`src/base/errors.ts\` and \`src/domain/reject.ts\` by \`npm run generate:docs\`.

## Requests that are refused

The body is \`{"errors":[{"error","error_code","message","details"}]}\` with an entry per problem, up to 100: the status
phrase, one of these codes, a sentence, the place.

| status | error_code |
|---|---|
${codes.join('\n')}

Send 408, 429 and 503 again; the last two say when in \`Retry-After\`.

## Records that are refused

A refused record does not fail its load, unless all are refused. [Rejects](loads.md#rejects) report it.

| error_code | meaning |
|---|---|
${rejects.join('\n')}

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

| failure.error_code | meaning |
|---|---|
| \`too_many_rejects\` | More records were refused than \`max_errors\` allows; nothing was written. |
| \`guard_exceeded\` | More would have been changed or removed than \`max_changed\` or \`max_removed_values\` allows; nothing was written. |
| \`hold_expired\` | The guard held the load, and nobody decided within \`FILE_RETENTION_DAYS\`; nothing was written. |
| \`plan_drifted\` | Profiles have changed since the plan that was to be applied; nothing was written. |
| \`all_records_refused\` | Every record was refused; the message gives the likely reason. |
| \`first_records_refused\` | The first ${MAX_REFUSED_AT_FIRST} records, or a few more, were all refused; the rest was not read and nothing was written. A load with \`max_errors\` goes on. |
| \`job_expired\` | The changes that the undo would take back are no longer kept: see \`CHANGES_DAYS\`. Of a held load: a deletion took its file. |
| \`begin_failed\`, \`chunk_failed\`, \`finish_failed\`, \`export_failed\`, \`deletion_failed\` | An error did not pass; the message gives it. |
| \`database_timeout\` | Ten times in a row, \`statement_timeout\` of the database role, or PostgreSQL 17's \`transaction_timeout\`, ended the work. |
| \`worker_lost\` | The work repeatedly lost its worker, a deletion without progress. |
| \`unknown_segment\` | The segment of an export was removed, or could not be read, before the export began. |
| \`export_timeout\` | The export took longer than 12 hours; request less at a time. |

While a job is being retried, \`last_error\` of its detail shows the error of the last attempt.

- **Loads**: rows that were applied before stay, and the message gives their number. \`retry\` loads the rest; after
  \`too_many_rejects\`, \`guard_exceeded\` and \`first_records_refused\` it accepts what was too much, after \`plan_drifted\` it
  plans anew. After \`all_records_refused\` correct the file and upload it again.
- **Exports**: nothing is kept; request the export again.
- **Deletions**: what was deleted stays deleted. \`outcomes\` shows which ids are \`pending\`: request their deletion again.
`;
}

/** Title of each section of the page. The key is the first setting of the section. */
const subjects: Readonly<Record<string, string>> = {
  HOST: 'Addresses',
  DATA_DIR: 'Database, queue and files',
  INBOX_DIR: 'Inbox',
  API_KEY: 'Keys and log',
  WORKERS: 'Processes and connections',
  MAX_UPLOAD_BYTES: 'Limits',
  FILE_RETENTION_DAYS: 'Retention',
  SMTP_URL: 'Mail and webhooks',
  SCHEDULES_LOCAL_ROOTS: 'Schedules',
  DRAIN_MS: 'Stopping',
};

export function configurationPage(): string {
  const rows = Object.values(settings).flatMap(({ name, fallback, meaning }) => {
    const subject = subjects[name];
    const row = `| \`${name}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${meaning} |`;
    return subject === undefined
      ? [row]
      : [`\n## ${subject}\n`, '| variable | default | meaning |', '|---|---|---|', row];
  });
  return `# Configuration

Generated from \`src/base/settings.ts\` by \`npm run generate:docs\`.

A setting takes the first value that is given by

1. a flag, for the few settings that have one (\`sluice --help\`);
2. the environment: \`NAME\`, or \`NAME_FILE\`, the path of a file with the value, such as a container's secret (not both);
3. the file \`.env\` in the folder where sluice is run;
4. the default.

\`sluice config\` shows each value in force and where it comes from; \`sluice config --example > .env\` writes a file to
start from. With an invalid value sluice does not start, and names each wrong setting and its rule.
${rows.join('\n')}
`;
}
