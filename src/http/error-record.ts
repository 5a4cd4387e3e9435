import { STATUS_CODES } from 'node:http';
import { errorCodes, type Problem } from '../domain/errors.ts';

/** One entry of the error record; every field is a string. */
export interface ErrorEntry {
  readonly error: string;
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

/** The body of every answer that is not a success. */
export interface ErrorRecord {
  readonly errors: readonly ErrorEntry[];
}

export function renderErrors(problems: readonly Problem[]): ErrorRecord {
  return {
    errors: problems.map(({ code, message, details }) => ({
      error: STATUS_CODES[errorCodes[code]] ?? 'Error',
      error_code: code,
      message,
      details,
    })),
  };
}
