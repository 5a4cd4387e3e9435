import { foreignRecord } from '../../mapping/foreign-events.ts';
import { isObject } from '../../mapping/json-object.ts';
import { type Mend, otherName } from './mend.ts';

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

/*
 * Text that is JSON but for how it is written: single quotes, names without quotes, commas at the end, decimal commas, None, NaN.
 * One pass; what it cannot make sense of makes it give up, and whether it became JSON is for the parser to say.
 */

const words: ReadonlyMap<string, string> = new Map(
  Object.entries({
    true: 'true',
    false: 'false',
    null: 'null',
    True: 'true',
    False: 'false',
    None: 'null',
    TRUE: 'true',
    FALSE: 'false',
    NULL: 'null',
    nil: 'null',
    NaN: 'null',
    undefined: 'null',
  }),
);

/** The first group: a comma that nothing follows. */
const token =
  /(,(?=\s*(?:[}\]]|$)))|\s+|[{}[\]:,]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?|[\p{L}_$][\p{L}\p{N}_$]*|;\s*$/suy;
const colonFollows = /\s*:/y;

/** The same as JSON; null if there is nothing to repair, or no way to. */
export function repairJson(text: string): string | null {
  const found: string[] = [];
  const within: string[] = [];
  for (let at = 0; at < text.length; ) {
    token.lastIndex = at;
    const [part = '', isSpareComma] = token.exec(text) ?? [];
    if (part === '') return null;
    at += part.length;
    if (part === '{' || part === '[') within.push(part);
    else if (part === '}' || part === ']') within.pop();
    colonFollows.lastIndex = at;
    const isName = colonFollows.test(text);
    const written = isSpareComma === undefined ? write(part, isName, within.at(-1) === '[') : '';
    if (written === null) return null;
    found.push(written);
  }
  const repaired = found.join('');
  return repaired === text ? null : repaired;
}

function write(part: string, isName: boolean, isInArray: boolean): string | null {
  const first = part[0] ?? '';
  if (first === "'") return requote(part.slice(1, -1));
  if (first === '"') return escapeControls(part);
  if (first === ';') return '';
  // In an array the comma may stand between two numbers.
  if (/[-+\d]/.test(first)) return (isInArray ? part : part.replace(',', '.')).replace(/^\+/, '');
  if (!/[\p{L}_$]/u.test(first)) return part;
  return isName ? JSON.stringify(part) : (words.get(part) ?? null);
}

function requote(inside: string): string {
  const plain = inside.replace(/\\.|"/gs, (found) => {
    if (found === '"') return '\\"';
    return found === "\\'" ? "'" : found;
  });
  return escapeControls(`"${plain}"`);
}

function escapeControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1));
}
