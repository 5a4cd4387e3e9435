import { isUtf8 } from 'node:buffer';
import { inputError } from '../domain/errors.ts';
import type { Reason } from '../domain/reject.ts';
import { parseJsonText } from '../mapping/json-text.ts';
import { Fields } from './fields.ts';

const byteOrderMark = '\ufeff';

/** Opens the body of a single record. @throws InputError `invalid_json`, `invalid_field`. */
export function readBody(body: Buffer): Fields {
  if (body.length === 0) throw inputError('invalid_json', 'The request has no body');
  if (!isUtf8(body)) throw inputError('invalid_json', 'The body is not valid UTF-8');
  const text = body.toString('utf8');
  const parsed = parseJsonText(text.startsWith(byteOrderMark) ? text.slice(1) : text);
  if ('code' in parsed) throw unreadable(parsed);
  return new Fields(parsed, body.length);
}

/** Why a body that is a JSON object was not read. */
function unreadable({ code, message }: Reason): Error {
  if (code === 'too_deep') return inputError('invalid_metadata_value', `The body is ${message}`);
  return inputError('invalid_json', 'The body is not JSON', message);
}
