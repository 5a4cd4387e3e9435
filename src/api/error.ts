import { type Static, Type } from 'typebox';
import { errorCodes } from '../domain/errors.ts';
import { component } from './schema.ts';

const errorEntry = Type.Object(
  {
    error: Type.String({ description: 'The status phrase.' }),
    error_code: Type.Enum(Object.keys(errorCodes), { type: 'string', description: 'Stable; for programs.' }),
    message: Type.String({ description: 'A sentence for a person.' }),
    details: Type.String({ description: 'Where: a field, a column, a position; may be empty.' }),
  },
  { additionalProperties: false },
);

export const errorRecord = component(
  'ErrorRecord',
  Type.Object(
    { errors: Type.Array(errorEntry, { minItems: 1, description: 'One entry per problem found.' }) },
    {
      additionalProperties: false,
      description: 'The body of every refusal.',
      examples: [
        {
          errors: [
            {
              error: 'Bad Request',
              error_code: 'missing_field',
              message: 'The form has no part named file',
              details: 'file',
            },
          ],
        },
      ],
    },
  ),
);
export type ErrorRecord = Static<typeof errorRecord.schema>;
