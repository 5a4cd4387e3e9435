import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { detectEncoding, toUtf8 } from '../../../src/formats/text-encoding.ts';
import { collect, inPieces } from './in-pieces.ts';

function utf16(text: string, bigEndian: boolean): Buffer {
  const bytes = Buffer.from(text, 'utf16le');
  return bigEndian ? bytes.swap16() : bytes;
}

async function convert(bytes: Buffer, ends: readonly number[] = []): Promise<Buffer> {
  return collect(toUtf8(inPieces(bytes, ends), detectEncoding(bytes)));
}

describe('text encoding', () => {
  it('tells encodings by their marks, and UTF-16 without one by its NULs', () => {
    expect(detectEncoding(Buffer.from('\ufeffa'))).toEqual({ name: 'utf-8', bomBytes: 3 });
    expect(detectEncoding(utf16('\ufeffa', false))).toEqual({ name: 'utf-16le', bomBytes: 2 });
    expect(detectEncoding(utf16('\ufeffa', true))).toEqual({ name: 'utf-16be', bomBytes: 2 });
    expect(detectEncoding(utf16('id', false))).toEqual({ name: 'utf-16le', bomBytes: 0 });
    expect(detectEncoding(utf16('id', true))).toEqual({ name: 'utf-16be', bomBytes: 0 });
    for (const text of ['', 'a', 'id,name', 'é']) {
      expect(detectEncoding(Buffer.from(text))).toEqual({ name: 'utf-8', bomBytes: 0 });
    }
  });

  it('makes UTF-8 of UTF-16 without its mark, wherever the buffers end', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'é', '日', '😀', '\n', '\ud800', '\udc00') });
    await fc.assert(
      fc.asyncProperty(text, fc.boolean(), fc.array(fc.nat(60)), async (content, bigEndian, cuts) => {
        const bytes = utf16(`\ufeff${content}`, bigEndian);
        const converted = await convert(
          bytes,
          cuts.sort((a, b) => a - b),
        );
        expect(converted.toString()).toBe(content.toWellFormed());
      }),
    );
  });

  it('makes U+FFFD of half a character at the end', async () => {
    expect((await convert(Buffer.concat([utf16('\ufeffab', false), Buffer.from('c')]))).toString()).toBe(
      'ab\ufffd',
    );
  });

  it('leaves UTF-8 alone, its mark and its faults included', async () => {
    const bytes = Buffer.concat([Buffer.from('\ufeffa'), Buffer.from([0xff, 0xc3])]);
    expect(await convert(bytes)).toEqual(bytes);
  });
});
