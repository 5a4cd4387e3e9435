import { Type } from 'typebox';
import { type ErrorCode, errorCodes } from '../domain/errors.ts';
import { choice, component, object, text } from './schema.ts';

const errorEntry = object(
  {
    error: text('The HTTP status phrase.', 'Bad Request'),
    error_code: choice(
      Object.keys(errorCodes) as ErrorCode[],
      'Error code: stable, for programs.',
      'missing_field',
    ),
    message: text('A sentence for a person.', 'The form has no part named file'),
    details: text('The field, column or position at fault. May be empty.', 'file'),
  },
  'One problem.',
);

export const errorRecord = component(
  'ErrorRecord',
  object(
    { errors: Type.Array(errorEntry, { minItems: 1, description: 'The problems found, one entry each.' }) },
    'The body of every refusal.',
  ),
);
