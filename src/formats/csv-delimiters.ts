import { CR, LF } from './record-scanner.ts';

/** In order of preference, for a header in which several come equally often. */
export const commonDelimiters = [',', ';', '\t', '|'] as const;
/** Those that may stand between names. */
export const delimiters = [
  ...commonDelimiters,
  ...[
    '^',
    '~',
    ':',
    '\x01',
    '\x1f',
    '~|~',
    '|~|',
    '^|^',
    '||',
    '::',
    ';;',
    '^^',
    '~~',
    '\t\t',
    // A quote behind the blank keeps the shorter one from being cut at.
    ', ',
    '; ',
    '| ',
    ' | ',
    ' ',
    'blanks',
  ],
] as const;
/** Those that tell records from texts even if no name is known. */
export const tellingDelimiters: readonly string[] = [...commonDelimiters, '^', '~', '||', ' ', 'blanks'];
const QUOTE = 34;

/** The line by which Excel learns the delimiter. */
export function readSeparatorLine(
  bytes: Buffer,
  isWhole: boolean,
): { delimiter: string; end: number } | null {
  const found = /^(?:"sep=([!-~\t ])"|sep=([!-~\t ]))(\r\n|\n|\r)/i.exec(bytes.toString('latin1', 0, 10));
  if (found === null || (bytes.length === found[0].length && !isWhole)) return null;
  return { delimiter: (found[1] ?? found[2]) as string, end: found[0].length };
}

/** The candidate that comes most often in the first record, outside quotes; a single column has none: `,`. */
export function frequentDelimiter(bytes: Buffer): string {
  const counts = new Uint32Array(256);
  let quoted = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte === QUOTE) quoted = !quoted;
    else if (quoted) continue;
    else if (byte === LF || byte === CR) break;
    else counts[byte] = (counts[byte] as number) + 1;
  }
  const count = (delimiter: string) => counts[delimiter.charCodeAt(0)] as number;
  return commonDelimiters.reduce<string>((best, each) => (count(each) > count(best) ? each : best), ',');
}
