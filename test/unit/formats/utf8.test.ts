import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeFault, validPrefix, writeUndecoded } from '../../../src/formats/utf8.ts';

describe('UTF-8', () => {
  it('finds where bytes stop being UTF-8', () => {
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

  it('writes a byte that is no character so that no neighbour makes it valid, and names it again', () => {
    const anything = fc.uint8Array({ maxLength: 4 });
    fc.assert(
      fc.property(fc.nat(255), anything, anything, (byte, before, after) => {
        const written = Buffer.alloc(3);
        writeUndecoded(byte, written, 0);
        expect(isUtf8(Buffer.concat([before, written, after]))).toBe(false);
        const shown = byte.toString(16).toUpperCase().padStart(2, '0');
        expect(describeFault(written, 0)).toBe(`0x${shown}, for which the file's encoding has no character`);
      }),
    );
  });
});
