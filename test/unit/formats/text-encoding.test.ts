import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodingOfLabel, markedEncoding, toUtf8 } from '../../../src/formats/text-encoding.ts';
import { readCodePage } from './code-page.ts';
import { bytewise, collect, inPieces } from './in-pieces.ts';

function utf16(text: string, bigEndian: boolean): Buffer {
  const bytes = Buffer.from(text, 'utf16le');
  return bigEndian ? bytes.swap16() : bytes;
}

function convert(name: string, bytes: Buffer, ends: readonly number[] = []): Promise<Buffer> {
  return collect(
    toUtf8(
      inPieces(
        bytes,
        ends.toSorted((a, b) => a - b),
      ),
      name,
    ),
  );
}

const cuts = fc.array(fc.nat(60), { maxLength: 20 });

const singleByte =
  'ibm866 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-8-i iso-8859-10 iso-8859-13 iso-8859-14 iso-8859-15 koi8-r koi8-u macintosh windows-874 windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258 x-mac-cyrillic'.split(
    ' ',
  );
const multiByte = ['gbk', 'gb18030', 'big5', 'euc-jp', 'iso-2022-jp', 'shift_jis', 'euc-kr'];
/** No text: controls beyond ASCII, characters for private use, and what stands for nothing. */
const noText = /[\u0080-\u009f\ue000-\uf8ff\ufffd]/g;

describe('text encoding', () => {
  it('knows the labels of TextDecoder, in any case and with blanks around', () => {
    expect(encodingOfLabel('latin1')).toBe('windows-1252');
    expect(encodingOfLabel(' Windows-1252 ')).toBe('windows-1252');
    expect(encodingOfLabel('ISO-8859-1')).toBe('windows-1252');
    expect(encodingOfLabel('utf-16')).toBe('utf-16le');
    expect(encodingOfLabel('UTF8')).toBe('utf-8');
    expect(encodingOfLabel('sjis')).toBe('shift_jis');
    for (const name of [...singleByte, ...multiByte]) expect(encodingOfLabel(name)).toBe(name);
    for (const label of ['', 'klingon', 'utf-32', 'x-user-defined']) {
      expect(() => encodingOfLabel(label)).toThrow(`"${label}" is no encoding that can be read`);
    }
  });

  it('tells encodings by their marks', () => {
    expect(markedEncoding(Buffer.from('\ufeffa'))).toBe('utf-8');
    expect(markedEncoding(utf16('\ufeffa', false))).toBe('utf-16le');
    expect(markedEncoding(utf16('\ufeffa', true))).toBe('utf-16be');
    for (const bytes of ['', 'a', 'é', '\xff'])
      expect(markedEncoding(Buffer.from(bytes, 'latin1'))).toBeNull();
  });

  it('makes UTF-8 of UTF-16 without its mark, wherever the buffers end', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'é', '日', '😀', '\n') });
    await fc.assert(
      fc.asyncProperty(text, fc.boolean(), cuts, async (content, bigEndian, ends) => {
        const name = bigEndian ? 'utf-16be' : 'utf-16le';
        const converted = await convert(name, utf16(`\ufeff${content}`, bigEndian), ends);
        expect(converted.toString()).toBe(content);
      }),
    );
  });

  it.each([
    ['the first half of a pair', 'a\ud800b'],
    ['the second half of a pair', 'a\udc00b'],
    ['two first halves', 'a\ud800\ud83d\ude00'],
    ['the first half of a pair at the end', 'ab\ud83d'],
    ['an odd last byte', 'ab', 1],
    ['half a pair and an odd byte', 'ab\ud83d', 1],
  ])('makes no character of %s in UTF-16', async (_, text, oddBytes = 0) => {
    for (const bigEndian of [false, true]) {
      const bytes = Buffer.concat([utf16(text, bigEndian), Buffer.alloc(oddBytes, 0x63)]);
      const name = bigEndian ? 'utf-16be' : 'utf-16le';
      for (const ends of [[], [3], [4], [5], bytewise(bytes)]) {
        const converted = await convert(name, bytes, ends);
        expect(isUtf8(converted)).toBe(false);
        expect(converted.includes('\ufffd')).toBe(false);
        expect(converted.subarray(0, 1).toString()).toBe('a');
      }
    }
  });

  it('reads what TextDecoder mistakes as the Encoding Standard does', async () => {
    const text = '€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ';
    const bytes = Array.from({ length: 32 }, (_, index) => 0x80 + index);
    const known = Buffer.from(bytes.filter((byte) => ![0x81, 0x8d, 0x8f, 0x90, 0x9d].includes(byte)));
    expect((await convert('windows-1252', known)).toString()).toBe(text);
    for (const name of singleByte) {
      const ascii = Buffer.from(Array.from({ length: 128 }, (_, byte) => byte));
      expect(await convert(name, ascii)).toEqual(ascii);
    }
  });

  // proves: encoding-exact
  it('gives back any text of a code page, however its bytes are cut into buffers', async () => {
    for (const name of singleByte) {
      const page = readCodePage(name);
      const known = [...page.keys()].filter((byte) => page[byte]?.search(noText) === -1);
      const some = fc.array(fc.constantFrom(...known), { maxLength: 60 });
      await fc.assert(
        fc.asyncProperty(some, cuts, async (content, ends) => {
          const text = content.map((byte) => page[byte]).join('');
          expect((await convert(name, Buffer.from(content), ends)).toString()).toBe(text);
        }),
        { numRuns: 20 },
      );
    }
  });

  it('reads encodings of several bytes where the decoder keeps more than it makes room for', async () => {
    const bytes = Buffer.from([0, 129, 48, 129, 129]);
    expect(isUtf8(await convert('gb18030', bytes, [4]))).toBe(false);
    const long = Buffer.concat([Buffer.alloc(1000, 0x61), bytes]);
    for (let end = 980; end < long.length; end++) {
      const converted = await convert('gb18030', long, [end]);
      expect(converted.subarray(0, 1000)).toEqual(Buffer.alloc(1000, 0x61));
    }
  });

  it('makes of any bytes what TextDecoder does in encodings of several bytes, wherever the buffers end', async () => {
    const bytes = fc.array(
      fc.oneof(fc.nat(255), fc.constantFrom(0x81, 0x82, 0xa4, 0xb0, 0xc4, 0x41, 0x30, 0x1b)),
      {
        maxLength: 60,
      },
    );
    for (const name of multiByte) {
      await fc.assert(
        fc.asyncProperty(bytes, cuts, async (content, ends) => {
          const theirs = new TextDecoder(name).decode(Uint8Array.from(content)).toWellFormed();
          const converted = await convert(name, Buffer.from(content), ends);
          expect(isUtf8(converted)).toBe(theirs.search(noText) === -1);
          const known = Buffer.from(converted.filter((byte) => byte !== 0xff)).toString();
          expect(known).toBe(theirs.replace(noText, ''));
        }),
        { numRuns: 500 },
      );
    }
  });

  // proves: encoding-exact
  it('makes U+FFFD of no bytes in any encoding', async () => {
    for (const name of [...singleByte, ...multiByte]) {
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ maxLength: 60 }), cuts, async (content, ends) => {
          const converted = await convert(name, Buffer.from(content), ends);
          expect(converted.includes('\ufffd')).toBe(false);
        }),
        { numRuns: 30 },
      );
    }
  });
});
