import fc from 'fast-check';

/**
 * Strings that combine parts of formulas, of CSV syntax and of defused formulas. No string contains
 * U+0000, because text columns cannot store it.
 */
export const hazardousText = fc
  .array(
    fc.oneof(
      fc.constantFrom("'", "''", '=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠', '"', ',', ';'),
      fc.constantFrom(
        '1',
        '-5',
        '1.5e3',
        ' ',
        'a',
        '\\',
        'é',
        '😀',
        '\ufeff',
        '\u00a0',
        '.',
        'HYPERLINK("x")',
      ),
      fc.string({ unit: 'grapheme', maxLength: 3 }).map((text) => text.replaceAll('\0', '')),
    ),
    { maxLength: 6 },
  )
  .map((pieces) => pieces.join(''));
