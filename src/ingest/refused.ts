import { type InputError, inputError } from '../domain/errors.ts';

/** What the caller is told of a record that passed our checks and that Postgres refuses all the same. */
export function refused(cause: unknown): InputError {
  const error = inputError('invalid_metadata_value', 'The database cannot store this record');
  error.cause = cause;
  return error;
}
