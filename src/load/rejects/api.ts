import { type Static, Type } from 'typebox';
import { MAX_SHAPE_CHARS, MAX_SHOWN_RAW_BYTES } from '../../base/limits.ts';
import { rejectCodes } from '../../domain/reject.ts';
import {
  choice,
  count,
  defineRecord,
  envelope,
  listOf,
  object,
  ordinal,
  orNull,
  reasonFields,
  text,
  texts,
} from '../../http/schema.ts';
import { CAUSE_SAMPLES, MAX_SAMPLE_CHARS, MAX_SHOWN_CAUSES } from '../limits.ts';

const row = ordinal('Position among the data records of the file.', 3);
const line = ordinal('Line on which the record starts.', 4);
const error_code = choice(rejectCodes, 'Error code: stable, for programs.');
const column = orNull(text('The column or property at fault. Null if it is the whole record.', 'user_id'));

export const reject = defineRecord('Reject', 'A refused record.', {
  row,
  line,
  byte_offset: count(
    'Byte at which the record starts in the stored file, which is plain CSV or NDJSON in UTF-8.',
  ),
  column,
  error_code,
  message: reasonFields.message,
  raw: text(
    `The record as it is stored. A CSV in another dialect is stored as plain CSV. A record of more than ${MAX_SHOWN_RAW_BYTES} bytes is cut and ends with an ellipsis; the CSV and NDJSON downloads have it whole. Bytes that are not UTF-8 show as U+FFFD.`,
    ',Nobody,free,',
  ),
  raw_base64: orNull(
    text(
      'The bytes of `raw` in Base64, if they are not UTF-8; otherwise null. They are the bytes of the stored file, which is in UTF-8 unless the original was damaged.',
    ),
    null,
  ),
  cells: orNull(
    texts(
      'The cells of a CSV record, even if there are more or fewer than columns. Null if they cannot be told apart, and for other formats.',
      ['', 'Nobody', 'free', ''],
    ),
  ),
});
export type Reject = Static<typeof reject.schema>;

export const rejectPage = envelope('RejectPage', reject.ref, 'Refused records, in file order.', {
  total_count: count('Number of refused records of the job, on all pages.'),
  columns: orNull(
    texts('The columns of the file, in the order of the cells. Null if it is not CSV.', [
      'user_id',
      'name',
      'plan',
      'company_id',
    ]),
  ),
});
export type RejectPage = Static<typeof rejectPage.schema>;

const excerpt = (description: string, example: string) =>
  Type.String({ maxLength: MAX_SAMPLE_CHARS, description, examples: [example] });

const causeSample = object('A record with this cause.', {
  row,
  line,
  value: orNull(
    excerpt('Value of the column. Null if there is none, or if the whole record is at fault.', '31/12/2025'),
  ),
  raw: excerpt('The record. Cut if it is long.', 'track,u1,signed_up,31/12/2025'),
});

const cause = defineRecord('RejectCause', 'Refused records that share a reason.', {
  id: Type.String({
    pattern: '^[0-9a-f]{13}$',
    description: 'ID of the cause; the same in every job.',
    examples: ['0b54d3f0c7a19'],
  }),
  error_code,
  column,
  shape: orNull(
    Type.String({
      minLength: 1,
      maxLength: MAX_SHAPE_CHARS,
      description:
        'Shape of the value, with digits as 9 and words as `a`; for a whole record, what is wrong with it. Null if the code says everything.',
      examples: ['99/99/9999'],
    }),
  ),
  count: ordinal('Number of refused records with this cause.'),
  first_row: row,
  samples: listOf('The first of them.', causeSample, { maxItems: CAUSE_SAMPLES }),
});
export type RejectCause = Static<typeof cause.schema>;

export const causePage = defineRecord('RejectCausePage', 'Refused records by cause.', {
  data: listOf('Causes, most frequent first.', cause.ref, { maxItems: MAX_SHOWN_CAUSES }),
  metadata: object('Totals.', {
    total_count: count('Number of refused records of the job.'),
    causes: count('Number of causes of the job.'),
    other_causes: count(`Number of causes beyond the first ${MAX_SHOWN_CAUSES}, which are not listed.`),
    other_count: count('Number of refused records with those causes.'),
  }),
});
