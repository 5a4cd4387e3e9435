import { foreignRecord } from '../../mapping/foreign-events.ts';
import { isObject } from '../../mapping/json-object.ts';
import type { Mend } from './mend.ts';
import { otherName } from './refused-values.ts';
import { repairJson } from './repair-json.ts';

/** The object that a JSON text or an array of one stands around; undefined if it does not. */
function unwrap(value: unknown): unknown {
  const inner = typeof value === 'string' ? parseOrUndefined(value) : value;
  const [only, ...more] = Array.isArray(inner) ? inner : [inner];
  return isObject(only) && more.length === 0 ? only : undefined;
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const mendsOfJson: readonly Mend[] = [
  {
    name: 'repaired',
    sentence:
      'rewritten as JSON: its quotes, its commas, and words of other languages for null, true and false',
    codes: ['invalid_json'],
    value: repairJson,
    text: repairJson,
  },
  {
    name: 'json-in-text',
    sentence: 'read as the object that stands in the text',
    codes: ['invalid_type'],
    value: (text) => (text.startsWith('"') ? textOf(unwrap(parseOrUndefined(text))) : null),
    json: (value) => (typeof value === 'string' ? unwrap(value) : undefined),
  },
  {
    name: 'unwrapped',
    sentence: 'read as the object that stands in an array or a text',
    codes: ['not_an_object'],
    text: (text) => textOf(unwrap(parseOrUndefined(text))),
  },
  {
    name: 'renamed',
    sentence: 'read with that key as the one that is missing',
    codes: ['missing_id', 'missing_event_name'],
    object: (record, column) => {
      // An id would make a profile of an event.
      if (foreignRecord(record) !== null) return false;
      const other = otherName(record, column);
      if (other === null || (record[other.ours] ?? null) !== null) return false;
      record[other.ours] = record[other.theirs];
      delete record[other.theirs];
      return true;
    },
  },
];

function textOf(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}
