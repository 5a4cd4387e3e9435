import { type Static, Type } from 'typebox';
import {
  CAUSE_SAMPLES,
  MAX_SAMPLE_CHARS,
  MAX_SHAPE_CHARS,
  MAX_SHOWN_CAUSES,
  TRIED_RECORDS,
} from '../../domain/limits.ts';
import { rejectCodes } from '../../domain/reject.ts';
import { component, orNull } from './answers.ts';

/* Why records of a job were refused, counted together, and what would mend them. */

const closed = { additionalProperties: false };
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

const count = (description: string) => Type.Integer({ minimum: 0, description });

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
export type CausePage = Static<typeof causePage.schema>;
