import { isUtf8 } from 'node:buffer';
import { inputError } from '../domain/errors.ts';
import { parseJsonText } from '../mapping/json-text.ts';
import { Fields } from './fields.ts';

const byteOrderMark = '\ufeff';

/** Opens the body of a single record. @throws InputError `invalid_json`, `invalid_field`. */
export function readBody(body: Buffer): Fields {
  if (body.length === 0) throw inputError('invalid_json', 'The request has no body');
  if (!isUtf8(body)) throw inputError('invalid_json', 'The body is not valid UTF-8');
  const text = body.toString('utf8');
  const parsed = parseJsonText(text.startsWith(byteOrderMark) ? text.slice(1) : text);
  if ('code' in parsed) throw inputError('invalid_json', 'The body is not JSON', parsed.message);
  return new Fields(parsed, body.length);
}
