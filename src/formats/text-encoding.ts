/** How the characters of a file are written, as far as its first bytes tell. */
export interface TextEncoding {
  readonly name: 'utf-8' | 'utf-16le' | 'utf-16be';
  /** Length of the byte order mark at the start; 0 if there is none. */
  readonly bomBytes: 0 | 2 | 3;
}

/** Without a byte order mark, UTF-16 is recognised by the NUL halves of its first two characters. */
export function detectEncoding(head: Buffer): TextEncoding {
  const [a, b, c, d] = head;
  if (a === 0xef && b === 0xbb && c === 0xbf) return { name: 'utf-8', bomBytes: 3 };
  if (a === 0xff && b === 0xfe) return { name: 'utf-16le', bomBytes: 2 };
  if (a === 0xfe && b === 0xff) return { name: 'utf-16be', bomBytes: 2 };
  if (head.length >= 4 && a !== 0 && b === 0 && c !== 0 && d === 0) return { name: 'utf-16le', bomBytes: 0 };
  if (head.length >= 4 && a === 0 && b !== 0 && c === 0 && d !== 0) return { name: 'utf-16be', bomBytes: 0 };
  return { name: 'utf-8', bomBytes: 0 };
}

/**
 * UTF-8 passes through as it is, its mark and its faults included (a record with a fault is refused when it is
 * read). UTF-16 becomes UTF-8 without a mark; a lone surrogate or an odd last byte becomes U+FFFD.
 */
export function toUtf8(source: AsyncIterable<Buffer>, encoding: TextEncoding): AsyncIterable<Buffer> {
  return encoding.name === 'utf-8' ? source : transcodeUtf16(source, encoding);
}

async function* transcodeUtf16(
  source: AsyncIterable<Buffer>,
  encoding: TextEncoding,
): AsyncGenerator<Buffer> {
  const bigEndian = encoding.name === 'utf-16be';
  let skip: number = encoding.bomBytes;
  let rest = Buffer.alloc(0);
  for await (const bytes of source) {
    // A copy in any case: swapping changes it, and the bytes belong to somebody else.
    const units = Buffer.concat([rest, bytes]);
    const end = wholeCharacters(units, bigEndian);
    rest = Buffer.from(units.subarray(end));
    if (bigEndian) units.subarray(0, end).swap16();
    const text = units.toString('utf16le', Math.min(skip, end), end);
    skip = Math.max(0, skip - end);
    if (text !== '') yield Buffer.from(text, 'utf8');
  }
  if (rest.length > 0) yield Buffer.from('\ufffd', 'utf8');
}

/** Length of the part that splits no code unit and no surrogate pair. */
function wholeCharacters(units: Buffer, bigEndian: boolean): number {
  const end = units.length - (units.length % 2);
  if (end === 0) return 0;
  const high = units[bigEndian ? end - 2 : end - 1] as number;
  return high >= 0xd8 && high <= 0xdb ? end - 2 : end;
}
