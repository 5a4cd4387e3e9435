import type { ErrorCode } from '../../domain/errors.ts';
import { refusals } from './error-answers.ts';

/** What every route of single records answers. */
export function ingestAnswers(...codes: readonly ErrorCode[]): Record<number, object> {
  return {
    202: { type: 'null', description: 'It is committed in the database. The body is empty.' },
    ...refusals(
      'invalid_json',
      'missing_field',
      'invalid_field',
      'invalid_metadata_value',
      ...codes,
      'upload_too_slow',
      'idempotency_conflict',
      'payload_too_large',
      'unsupported_media_type',
    ),
  };
}
