import { type Static, Type } from 'typebox';
import {
  CAUSE_SAMPLES,
  MAX_SAMPLE_CHARS,
  MAX_SHAPE_CHARS,
  MAX_SHOWN_CAUSES,
  MAX_SHOWN_RAW_BYTES,
  REPLACEMENT_COUNT_MS,
  TRIED_RECORDS,
} from '../domain/limits.ts';
import { rejectCodes } from '../domain/reject.ts';
import { closed, component, count, envelope, orNull } from './schema.ts';

export const reject = component(
  'Reject',
  Type.Object(
    {
      row: Type.Integer({ minimum: 1, description: 'Position among the data records of the file.' }),
      line: Type.Integer({ minimum: 1, description: 'Line on which the record starts.' }),
      byte_offset: Type.Integer({
        minimum: 0,
        description: 'Byte at which the record starts in the file once unpacked and in UTF-8.',
      }),
      column: orNull(
        Type.String({ description: 'The column or property at fault; null: the record as a whole.' }),
      ),
      error_code: Type.Enum([...rejectCodes], { type: 'string', description: 'Stable; for programs.' }),
      message: Type.String({ description: 'A sentence for a person.' }),
      raw: Type.String({
        description: `The record as it stood in the file. Of one longer than ${MAX_SHOWN_RAW_BYTES} bytes the beginning, and an ellipsis; as CSV and NDJSON it is whole. Bytes that are not UTF-8 show as U+FFFD.`,
      }),
      raw_base64: orNull(
        Type.String({
          description:
            'The bytes of `raw` in Base64 where they are not UTF-8 and the text cannot show them; else null. They are those of the file as stored: of a file in another encoding, its text in UTF-8.',
        }),
      ),
      cells: Type.Unsafe<string[] | null>({
        type: ['array', 'null'],
        items: { type: 'string' },
        description:
          'Of a record of CSV, what its cells hold, also where there are more or fewer than columns; null if it cannot be told, and of other files.',
      }),
    },
    {
      additionalProperties: false,
      description: 'A refused record.',
      examples: [
        {
          row: 3,
          line: 4,
          byte_offset: 83,
          column: 'user_id',
          error_code: 'missing_id',
          message: 'user_id is empty',
          raw: ',Nobody,free,',
          raw_base64: null,
          cells: ['', 'Nobody', 'free', ''],
        },
      ],
    },
  ),
);
export type Reject = Static<typeof reject.schema>;

export const rejectPage = envelope('RejectPage', reject.ref, 'Refused records, in file order.', {
  total_count: Type.Integer({ minimum: 0, description: 'Refused records of the job, on all pages.' }),
  columns: Type.Unsafe<string[] | null>({
    type: ['array', 'null'],
    items: { type: 'string' },
    description: 'The columns of the source, which the cells stand in; null if it is no CSV.',
    examples: [['user_id', 'name', 'plan', 'company_id']],
  }),
});
export type RejectPage = Static<typeof rejectPage.schema>;

const row = Type.Integer({ minimum: 1, description: 'Position among the data records of the file.' });

const text = (description: string) => Type.String({ maxLength: MAX_SAMPLE_CHARS, description });

export const mendSample = Type.Object(
  {
    row,
    before: text('The value at fault, or the record where that is; cut if it is long.'),
    after: text('What the mend makes of it; empty: no value.'),
  },
  { ...closed, description: 'What a mend makes of a record.' },
);

export const proposal = component(
  'MendProposal',
  Type.Object(
    {
      id: Type.String({
        pattern: '^[0-9a-f]{13}-[a-z0-9-]+$',
        description: 'Names the mend of this cause.',
      }),
      sentence: Type.String({ description: 'What it does, for a person.' }),
      tried: Type.Integer({
        minimum: 1,
        maximum: TRIED_RECORDS,
        description: 'Records of the cause that it was tried on: the first, and of many the last.',
      }),
      accepted: Type.Integer({ minimum: 1, description: 'How many of them a load would then take.' }),
      ambiguous: Type.Boolean({
        description: 'The records do not show that this reading is the right one: a person has to know.',
      }),
      samples: Type.Array(mendSample, { maxItems: CAUSE_SAMPLES, description: 'Records before and after.' }),
    },
    {
      ...closed,
      description: 'A mend that would make records of a cause acceptable.',
      examples: [
        {
          id: '0b54d3f0c7a19-day-first',
          sentence: '39 981 × 99/99/9999: read as day first',
          tried: 200,
          accepted: 200,
          ambiguous: false,
          samples: [{ row: 7, before: '31/12/2025', after: '2025-12-31' }],
        },
      ],
    },
  ),
);
export type MendProposal = Static<typeof proposal.schema>;

const causeSample = Type.Object(
  {
    row,
    line: Type.Integer({ minimum: 1, description: 'Line on which the record starts.' }),
    value: orNull(text('What stood in the column; null where the record is at fault, or it is not there.')),
    raw: text('The record, cut if it is long.'),
  },
  { ...closed, description: 'A record of the cause.' },
);

export const cause = component(
  'RejectCause',
  Type.Object(
    {
      id: Type.String({ pattern: '^[0-9a-f]{13}$', description: 'Names the cause; the same in every job.' }),
      error_code: Type.Enum([...rejectCodes], { type: 'string', description: 'Stable; for programs.' }),
      column: orNull(Type.String({ description: 'The column or property at fault; null: the record.' })),
      shape: orNull(
        Type.String({
          minLength: 1,
          maxLength: MAX_SHAPE_CHARS,
          description:
            'What stood there, digits as 9 and words as `a`; of a record, what is wrong with it; null where the code says it all.',
        }),
      ),
      count: Type.Integer({ minimum: 1, description: 'Refused records of the cause.' }),
      first_row: row,
      samples: Type.Array(causeSample, { maxItems: CAUSE_SAMPLES, description: 'The first of them.' }),
      proposals: Type.Array(proposal.ref, { description: 'What would mend them, the likeliest first.' }),
    },
    {
      ...closed,
      description: 'Refused records that share a reason.',
      examples: [
        {
          id: '0b54d3f0c7a19',
          error_code: 'invalid_date',
          column: 'inserted_at',
          shape: '99/99/9999',
          count: 39981,
          first_row: 7,
          samples: [{ row: 7, line: 8, value: '31/12/2025', raw: 'track,u1,signed_up,31/12/2025' }],
          proposals: [],
        },
      ],
    },
  ),
);
export type RejectCause = Static<typeof cause.schema>;

export const causePage = component(
  'RejectCausePage',
  Type.Object(
    {
      data: Type.Array(cause.ref, { maxItems: MAX_SHOWN_CAUSES, description: 'The most frequent first.' }),
      metadata: Type.Object(
        {
          total_count: count('Refused records of the job.'),
          causes: count('Causes of the job.'),
          other_causes: count(`Causes that are not listed: of those beyond the first ${MAX_SHOWN_CAUSES}.`),
          other_count: count('Refused records of those.'),
        },
        { ...closed, description: 'Of all of them.' },
      ),
    },
    { ...closed, description: 'Refused records by cause.' },
  ),
);
export type RejectCausePage = Static<typeof causePage.schema>;

export const replacementPreview = component(
  'ReplacementPreview',
  Type.Object(
    {
      id: Type.String({ description: 'To be sent as `apply` to `/amend`.' }),
      records: Type.Integer({
        minimum: 0,
        description: 'Refused records that it changes and that a load would take then.',
      }),
      is_complete: Type.Boolean({
        description: `All were counted. False: ${REPLACEMENT_COUNT_MS / 1_000} seconds were over, and \`records\` is the least that there are.`,
      }),
      samples: Type.Array(mendSample, {
        maxItems: CAUSE_SAMPLES,
        description: 'The first of them, before and after.',
      }),
    },
    {
      additionalProperties: false,
      description: 'What a replacement comes to.',
      examples: [
        {
          id: 'all-replace-WyJ1c2VyX2lkIiwiIiwidXtyb3d9Il0',
          records: 5000,
          is_complete: true,
          samples: [{ row: 59, before: ',Anna,59.5', after: 'u59,Anna,59.5' }],
        },
      ],
    },
  ),
);
export type ReplacementPreview = Static<typeof replacementPreview.schema>;
