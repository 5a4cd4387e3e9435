import { isUtf8 } from 'node:buffer';
import type { Mend } from './mend.ts';

/* Bytes that are not UTF-8, read in a code page of one byte a character: what they mean is then sure if the code page is. */

/** What `likelyEncodings` may name, of those; in the others letters may look like UTF-8. */
const codePages = [
  'windows-1252',
  'windows-1250',
  'windows-1251',
  'windows-1253',
  'windows-1254',
  'windows-1255',
  'windows-1256',
  'windows-1257',
  'windows-874',
  'iso-8859-2',
  'iso-8859-15',
  'koi8-r',
  'macintosh',
] as const;

/** A character of UTF-8 beyond ASCII, in a byte string. */
const utf8Character = /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}/;
/** Control characters that no text has, and those that stand for no byte. */
const noText = /[\u0080-\u009f\ufffd]/;

function readIn(encoding: string): (raw: Buffer) => string | null {
  return (raw) => {
    // Where some of it is UTF-8, two programs wrote it: read whole in either, it would be wrong.
    if (isUtf8(raw) || utf8Character.test(raw.toString('latin1'))) return null;
    const text = new TextDecoder(encoding).decode(raw);
    return noText.test(text) ? null : text;
  };
}

export const mendsOfEncodings: readonly Mend[] = codePages.map((encoding) => ({
  name: encoding,
  sentence: `read in ${encoding}`,
  codes: ['invalid_utf8'],
  bytes: readIn(encoding),
}));
