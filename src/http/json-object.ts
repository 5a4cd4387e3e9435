import { isUtf8 } from 'node:buffer';
import { inputError } from '../domain/errors.ts';
import { MAX_PARSED_DEPTH } from '../domain/limits.ts';
import { isNestedDeeper } from '../formats/json-nesting.ts';

const byteOrderMark = '\ufeff';

/** A body that is a JSON object, or nothing, which is an empty one. @throws InputError `invalid_json`, `invalid_field`. */
export function readJsonObject(body: Buffer): Readonly<Record<string, unknown>> {
  if (!isUtf8(body)) throw inputError('invalid_json', 'The body is not valid UTF-8');
  const text = body.toString('utf8').replace(byteOrderMark, '').trim();
  if (text === '') return {};
  const value = parse(text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw inputError('invalid_field', 'The body must be a JSON object');
}

function parse(text: string): unknown {
  if (isNestedDeeper(text, MAX_PARSED_DEPTH)) {
    throw inputError('invalid_field', `The body is nested deeper than ${MAX_PARSED_DEPTH} levels`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw inputError('invalid_json', 'The body is not JSON', error instanceof Error ? error.message : '');
  }
}
