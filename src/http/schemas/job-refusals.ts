import type { ErrorCode } from '../../domain/errors.ts';
import { refusals } from './error-answers.ts';

/** A job id that is no proper part of a URL is `invalid_field`; one that is absurdly long is no address at all. */
export function jobRefusals(...codes: readonly ErrorCode[]): Record<number, object> {
  return refusals('invalid_field', ...codes, 'not_found', 'route_not_found');
}
