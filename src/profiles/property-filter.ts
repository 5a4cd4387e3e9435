import { MAX_NUMBER_EXPONENT, MAX_PROPERTY_NAME_CHARS } from '../domain/limits.ts';
import { textProblem } from '../validation.ts';

const maxComparedValueChars = 1_024;

/*
 * `plan:pro`: a property and the value that it must have. In a URL and on a command line all is text, while stored values have
 * a type: CSV leaves strings, JSON numbers and booleans. So a text means each value that is written like it: `120` the number
 * 120 and the string "120". Quotes make it a string and nothing else: `"120"`.
 */

export interface PropertyFilter {
  readonly objects: readonly string[];
}

const bytesPerChar = 4;
const quoted = /^"(?:[^"\\]|\\.)*"/;
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE]([+-]?\d{1,9}))?$/;

export function propertyProblem(text: string): string | null {
  const found = split(text);
  if (found === null) return 'property is name:value, such as plan:pro; a name with a colon stands in quotes';
  const name = textProblem(found.name, MAX_PROPERTY_NAME_CHARS * bytesPerChar);
  if (name !== null) return `The name in property ${name}`;
  if (found.name.length > MAX_PROPERTY_NAME_CHARS) {
    return `The name in property is longer than ${MAX_PROPERTY_NAME_CHARS} characters`;
  }
  const value = found.value === '' ? null : textProblem(found.value, maxComparedValueChars * bytesPerChar);
  if (value !== null) return `The value in property ${value}`;
  return null;
}

export function readPropertyFilter(text: string): PropertyFilter {
  const { name, value, isString } = split(text) ?? { name: text, value: '', isString: true };
  const values = [JSON.stringify(value), ...(isString ? [] : unquoted(value))];
  return { objects: values.map((json) => `{${JSON.stringify(name)}:${json}}`) };
}

/** The value as JSON that is no string, if it can be that. Its digits stay: JavaScript would round some. */
function unquoted(value: string): string[] {
  if (value === 'true' || value === 'false') return [value];
  const match = number.exec(value);
  return match !== null && Math.abs(Number(match[1] ?? 0)) <= MAX_NUMBER_EXPONENT ? [value] : [];
}

interface Split {
  readonly name: string;
  readonly value: string;
  readonly isString: boolean;
}

function split(text: string): Split | null {
  const [literal] = quoted.exec(text) ?? [];
  const inQuotes = literal === undefined ? null : parseString(literal);
  const at = literal === undefined || inQuotes === null ? text.indexOf(':') : literal.length;
  if (at < 0 || text[at] !== ':') return null;
  const value = text.slice(at + 1);
  const string = quoted.exec(value)?.[0] === value ? parseString(value) : null;
  return { name: inQuotes ?? text.slice(0, at), value: string ?? value, isString: string !== null };
}

function parseString(literal: string): string | null {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return null;
  }
}
