import type { TSchema } from 'typebox';
import { refusals } from './error-answers.ts';

/** What every upload answers. */
export function uploadAnswers(status: 200 | 202, record: TSchema): Record<number, object> {
  return {
    [status]: {
      description: 'The file was received whole and is kept; the job that loads it is queued.',
      content: { 'application/json': { schema: record } },
    },
    ...refusals(
      'invalid_json',
      'missing_field',
      'invalid_field',
      'empty_file',
      'unrecognised_columns',
      'unsupported_format',
      'upload_too_slow',
      'idempotency_conflict',
      'duplicate_file',
      'payload_too_large',
      'unsupported_media_type',
    ),
  };
}
