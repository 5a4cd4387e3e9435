import { inputError } from '../domain/errors.ts';
import { codePageToUtf8, isMultiByte, multiByteToUtf8 } from './code-page.ts';
import { utf16ToUtf8 } from './utf16.ts';

/** The character encoding of a file. */
export interface TextEncoding {
  /** As the WHATWG Encoding Standard calls it, in small letters. */
  readonly name: string;
  /** Length of the byte order mark at the start; 0 if there is none. */
  readonly bomBytes: 0 | 2 | 3;
}

/**
 * The encoding that a label stands for: `latin1` is `windows-1252`, `utf-16` is `utf-16le`. Labels are those of the WHATWG
 * Encoding Standard, as `TextDecoder` knows them.
 * @throws InputError `invalid_field` for any other.
 */
export function encodingOfLabel(label: string): string {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    const examples = 'utf-8, utf-16le, windows-1252, iso-8859-2, windows-1251, shift_jis or gb18030';
    const message = `"${label}" is no encoding that can be read; give a label of the WHATWG Encoding Standard, such as ${examples}`;
    throw inputError('invalid_field', message, 'encoding');
  }
}

const marks = [
  { name: 'utf-8', mark: Buffer.of(0xef, 0xbb, 0xbf), bomBytes: 3 },
  { name: 'utf-16le', mark: Buffer.of(0xff, 0xfe), bomBytes: 2 },
  { name: 'utf-16be', mark: Buffer.of(0xfe, 0xff), bomBytes: 2 },
] as const;

/** By its byte order mark; null if there is none. */
export function markedEncoding(head: Buffer): TextEncoding | null {
  const found = marks.find(({ mark }) => head.subarray(0, mark.length).equals(mark));
  return found === undefined ? null : { name: found.name, bomBytes: found.bomBytes };
}

/**
 * UTF-8 passes through as it is, its mark and its faults included (a record with a fault is refused when it is read).
 * Anything else becomes UTF-8; where no character stands for its bytes, there stand bytes that are not UTF-8 (`utf8.ts`), so
 * that those records are refused too.
 */
export function toUtf8(
  source: AsyncIterable<Buffer>,
  { name, bomBytes }: TextEncoding,
): AsyncIterable<Buffer> {
  if (name === 'utf-8') return source;
  if (name === 'utf-16le' || name === 'utf-16be') return utf16ToUtf8(source, name === 'utf-16be', bomBytes);
  return isMultiByte(name) ? multiByteToUtf8(source, name) : codePageToUtf8(source, name);
}
