import fc from 'fast-check';

/** Text of the parts of formulas, CSV and defused cells, without U+0000, which no column takes. */
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
