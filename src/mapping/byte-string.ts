/**
 * Byte strings: one character per byte of UTF-8 (latin1). Text that is only split, compared and copied never
 * needs decoding; these are the places where it meets text that was decoded.
 */
export function toByteString(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

export function fromByteString(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

const copySpecial = /[\\\t\n\r\b\f\v]/;
const copySpecials = /[\\\t\n\r\b\f\v]/g;
const copyEscapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\b': '\\b',
  '\f': '\\f',
  '\v': '\\v',
};

/** A text value as COPY's text format wants it (PostgreSQL documentation, COPY, "Text Format"). */
export function escapeCopy(text: string): string {
  return copySpecial.test(text) ? text.replace(copySpecials, (found) => copyEscapes[found] ?? found) : text;
}

/** JSON text holds no raw control characters: only its backslashes mean something to COPY. */
export function escapeCopyJson(json: string): string {
  return json.includes('\\') ? json.replaceAll('\\', '\\\\') : json;
}

const copyLetters: Readonly<Record<string, string>> = {
  t: '\t',
  n: '\n',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
};

/** What `escapeCopy` was given. */
export function unescapeCopy(text: string): string {
  return text.replace(/\\(.)/gs, (_, letter: string) => copyLetters[letter] ?? letter);
}
