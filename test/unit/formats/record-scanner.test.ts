import { expect, it } from 'vitest';
import { createLineScanner } from '../../../src/formats/record-scanner.ts';
import { feedScanner } from './feed-scanner.ts';

function outline(text: string, maxBytes = 100, step = text.length) {
  const bytes = Buffer.from(text);
  const ends = Array.from({ length: Math.ceil(bytes.length / step) }, (_, i) =>
    Math.min(bytes.length, (i + 1) * step),
  );
  return feedScanner(createLineScanner(maxBytes), bytes, ends).map((record) =>
    record.blank
      ? 'blank'
      : [record.problem, bytes.toString('utf8', record.start, record.contentEnd), record.lines],
  );
}

it('records end at LF and CRLF, but not at a lone CR', () => {
  expect(outline('{"a":1}\r\n{"b":\r2}\n{}')).toEqual([
    [null, '{"a":1}', 1],
    [null, '{"b":\r2}', 1],
    [null, '{}', 0],
  ]);
});

it('a line of white space is blank', () => {
  expect(outline('\n \t\r\n{}\n\r')).toEqual(['blank', 'blank', [null, '{}', 1], 'blank']);
});

it('a line over the limit is refused for any split, without its neighbours', () => {
  for (const step of [1, 3, 8, 1000]) {
    expect(
      outline(`{}\n${'x'.repeat(11)}\r\n${'y'.repeat(10)}\r\n[]`, 10, step),
      `${step} bytes at a time`,
    ).toEqual([
      [null, '{}', 1],
      ['record_too_large', 'x'.repeat(11), 1],
      [null, 'y'.repeat(10), 1],
      [null, '[]', 0],
    ]);
  }
});
