import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { encodeUtf8, validPrefix } from '../../../src/formats/utf8.ts';

it('the valid prefix of any bytes is found', () => {
  const byte = fc.constantFrom(0x61, 0x61, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0xff);
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 100 }), (content) => {
      const bytes = Buffer.from(content);
      let longest = 0;
      for (let end = 1; end <= bytes.length; end++) if (isUtf8(bytes.subarray(0, end))) longest = end;
      expect(validPrefix(bytes)).toBe(longest);
    }),
  );
});

it('an encoded non-character stays invalid next to any bytes', () => {
  const anything = fc.uint8Array({ maxLength: 4 });
  fc.assert(
    fc.property(anything, anything, (prefix, suffix) => {
      const encoded = encodeUtf8('\ufffd', /\ufffd/);
      expect(isUtf8(Buffer.concat([prefix, encoded, suffix]))).toBe(false);
    }),
  );
  expect(encodeUtf8('é\ufffdb', /\ufffd/)).toEqual(Buffer.from([0xc3, 0xa9, 0xff, 0x62]));
});
