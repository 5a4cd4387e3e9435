import { Type } from 'typebox';
import { errorCodes } from '../domain/errors.ts';
import { choice, component, object, text } from './schema.ts';

const errorEntry = object(
  {
    error: text('The HTTP status phrase.'),
    error_code: choice(Object.keys(errorCodes), 'Error code: stable, for programs.'),
    message: text('A sentence for a person.'),
    details: text('The field, column or position at fault. May be empty.'),
  },
  'One problem.',
);

export const errorRecord = component(
  'ErrorRecord',
  object(
    { errors: Type.Array(errorEntry, { minItems: 1, description: 'The problems found, one entry each.' }) },
    'The body of every refusal.',
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
  ),
);
