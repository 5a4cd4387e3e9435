import { type Static, Type } from 'typebox';
import { MAX_PAGE_SIZE, MAX_SHOWN_RAW_BYTES } from '../../domain/limits.ts';
import { rejectCodes } from '../../domain/reject.ts';
import { component } from './component.ts';
import { orNull } from './or-null.ts';

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
      error_code: Type.Enum([...rejectCodes], { type: 'string' }),
      message: Type.String(),
      raw: Type.String({
        description: `The record as it stood in the file. Of one longer than ${MAX_SHOWN_RAW_BYTES} bytes the beginning, and an ellipsis; as CSV and NDJSON it is whole.`,
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
        },
      ],
    },
  ),
);
export type RejectRecord = Static<typeof reject.schema>;

export const rejectPage = component(
  'RejectPage',
  Type.Object(
    {
      data: Type.Array(reject.ref),
      metadata: Type.Object(
        {
          cursor: Type.Object(
            {
              after: orNull(Type.String({ description: 'The `cursor` of the next page; null on the last.' })),
              before: Type.Null(),
            },
            { additionalProperties: false },
          ),
          limit: Type.Integer({ minimum: 1, maximum: MAX_PAGE_SIZE }),
          total_count: Type.Integer({ minimum: 0, description: 'Refused records of the job, on all pages.' }),
        },
        { additionalProperties: false },
      ),
    },
    { additionalProperties: false, description: 'Refused records, in file order.' },
  ),
);
