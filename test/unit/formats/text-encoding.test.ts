import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodingOfLabel, findEncoding, TextReader, toUtf8 } from '../../../src/formats/text-encoding.ts';
import { runs } from '../../support/runs.ts';
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

function readCodePage(encoding: string): readonly string[] {
  return Array.from({ length: 256 }, (_, byte) => new TextReader(encoding).read(Buffer.of(byte)));
}

function encodeIn(encoding: string, text: string): Buffer {
  const page = readCodePage(encoding);
  return Buffer.from([...text].map((character) => page.indexOf(character)));
}

const cuts = fc.array(fc.nat(60), { maxLength: 20 });

const singleByte =
  'ibm866 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-8-i iso-8859-10 iso-8859-13 iso-8859-14 iso-8859-15 koi8-r koi8-u macintosh windows-874 windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258 x-mac-cyrillic'.split(
    ' ',
  );
const multiByte = ['gbk', 'gb18030', 'big5', 'euc-jp', 'iso-2022-jp', 'shift_jis', 'euc-kr'];
/**
 * Characters that do not occur in text: non-ASCII control characters, private characters, and the
 * replacement character.
 */
const noText = /[\u0080-\u009f\ue000-\uf8ff\ufffd]/g;

describe('text encoding', () => {
  it('the labels of TextDecoder are known in any case and with surrounding blanks', () => {
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

  it('UTF-16 becomes UTF-8 without its byte order mark, for any ends of buffers', async () => {
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
  ])('%s in UTF-16 becomes invalid UTF-8, never a character', async (_, text, oddBytes = 0) => {
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

  it('windows-1252 and ASCII are read as the Encoding Standard specifies', async () => {
    const text = '€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ';
    const bytes = Array.from({ length: 32 }, (_, index) => 0x80 + index);
    const defined = Buffer.from(bytes.filter((byte) => ![0x81, 0x8d, 0x8f, 0x90, 0x9d].includes(byte)));
    expect((await convert('windows-1252', defined)).toString()).toBe(text);
    for (const name of singleByte) {
      const ascii = Buffer.from(Array.from({ length: 128 }, (_, byte) => byte));
      expect(await convert(name, ascii)).toEqual(ascii);
    }
  });

  // proves: encoding-exact
  it('any text of a code page is read back, for any ends of buffers', async () => {
    for (const name of singleByte) {
      const page = readCodePage(name);
      const definedBytes = [...page.keys()].filter((byte) => page[byte]?.search(noText) === -1);
      const content = fc.array(fc.constantFrom(...definedBytes), { maxLength: 60 });
      await fc.assert(
        fc.asyncProperty(content, cuts, async (content, ends) => {
          const text = content.map((byte) => page[byte]).join('');
          expect((await convert(name, Buffer.from(content), ends)).toString()).toBe(text);
        }),
        { numRuns: 20 },
      );
    }
  });

  it('gb18030 is read where the decoder keeps more bytes than it has room for', async () => {
    const bytes = Buffer.from([0, 129, 48, 129, 129]);
    expect(isUtf8(await convert('gb18030', bytes, [4]))).toBe(false);
    const long = Buffer.concat([Buffer.alloc(1000, 0x61), bytes]);
    for (let end = 980; end < long.length; end++) {
      const converted = await convert('gb18030', long, [end]);
      expect(converted.subarray(0, 1000)).toEqual(Buffer.alloc(1000, 0x61));
    }
  });

  it('any bytes in multi-byte encodings are read as TextDecoder reads them', async () => {
    const bytes = fc.array(
      fc.oneof(fc.nat(255), fc.constantFrom(0x81, 0x82, 0xa4, 0xb0, 0xc4, 0x41, 0x30, 0x1b)),
      {
        maxLength: 60,
      },
    );
    for (const name of multiByte) {
      await fc.assert(
        fc.asyncProperty(bytes, cuts, async (content, ends) => {
          const reference = new TextDecoder(name).decode(Uint8Array.from(content)).toWellFormed();
          const converted = await convert(name, Buffer.from(content), ends);
          expect(isUtf8(converted)).toBe(reference.search(noText) === -1);
          const text = Buffer.from(converted.filter((byte) => byte !== 0xff)).toString();
          expect(text).toBe(reference.replace(noText, ''));
        }),
        { numRuns: runs(500) },
      );
    }
  });

  // proves: encoding-exact
  it('no bytes become U+FFFD in any encoding', async () => {
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

const csvOf = (words: string) =>
  `user_id,name\n${words
    .split(' ')
    .map((word, at) => `u${at},${word}\n`)
    .join('')}`;

const find = (bytes: Buffer, specified: string | null = null) => findEncoding(bytes, true, specified).name;
const refusal = (bytes: Buffer, specified: string | null = null): string => {
  try {
    return `read as ${find(bytes, specified)}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

describe('the encoding of a file', () => {
  it('valid UTF-8 is UTF-8, even if the sample ends within a character', () => {
    for (const text of ['', 'a', 'id,name', 'é', 'a\0b']) expect(find(Buffer.from(text))).toBe('utf-8');
    const cut = Buffer.from('user_id,name\nu1,日').subarray(0, -1);
    expect(findEncoding(cut, false, null).name).toBe('utf-8');
    expect(() => findEncoding(cut, true, null)).toThrow('byte 16, line 2, column 4');
  });

  it('a byte order mark overrides the specified encoding', () => {
    expect(findEncoding(Buffer.from('\ufeffa'), true, null)).toEqual({
      name: 'utf-8',
      notes: [],
    });
    expect(find(utf16('\ufeffa', false))).toBe('utf-16le');
    const reading = findEncoding(utf16('\ufeffa', true), true, 'windows-1252');
    expect(reading).toMatchObject({ name: 'utf-16be' });
    expect(reading.notes).toEqual([expect.stringContaining('byte order mark of utf-16be')]);
    expect(refusal(Buffer.from([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0]))).toContain('UTF-32');
  });

  it('NULs in one half of each character mean UTF-16 without a mark', () => {
    const texts = [
      'id',
      csvOf('Ann Bob'),
      csvOf('日本 東京都'),
      csvOf('Иван Пётр'),
      `名,id\n${'日本,u1\n'.repeat(100)}`,
      csvOf('Ā Ĉ half\ud800'),
    ];
    for (const text of texts) {
      for (const bigEndian of [false, true]) {
        expect(find(utf16(text, bigEndian)), text).toBe(bigEndian ? 'utf-16be' : 'utf-16le');
      }
    }
  });

  // proves: encoding-exact
  it.each([
    'José Müller François',
    'García López Muñoz',
    'Hélène Noël Loïc',
    'Bjørn Åse Ødegård',
    'Åkesson Öberg Sjöström',
    'Größe Straße Köln',
    'città perché più',
    'aujourd’hui dell’arte O’Connor',
    '5€ £7 20°C',
    '“quoted” «été» 50m²',
  ])('windows-1252 is recognised where it is unambiguous: %s', (words) => {
    const { name, notes } = findEncoding(encodeIn('windows-1252', csvOf(words)), true, null);
    expect(name).toBe('windows-1252');
    expect(notes).toEqual([expect.stringContaining('windows-1252')]);
  });

  // proves: encoding-exact
  it.each([
    ['windows-1250', 'Kučera'],
    ['windows-1250', 'Novák Jiří Tomáš Dvořák'],
    ['windows-1250', 'Kovács Szabó Erdős Győr'],
    ['windows-1250', 'Kovačić Đoković'],
    ['windows-1250', 'Novák André José René Jiří Müller'],
    ['windows-1254', 'Yılmaz Şahin Doğan'],
    ['windows-1257', 'Rīga Bērziņš'],
    ['windows-1251', 'Иванов Пётр Москва'],
    ['koi8-r', 'Иванов Пётр Москва'],
    ['ibm866', 'Иванов Пётр Москва'],
    ['windows-1253', 'Αθήνα Παπαδόπουλος'],
    ['windows-1255', 'שלום עולם'],
    ['windows-1256', 'محمد السلام'],
    ['windows-874', 'สวัสดี'],
    ['macintosh', 'José Müller'],
    ['iso-8859-2', 'Paweł Łukasz Wałęsa'],
    ['iso-8859-15', 'José 12€'],
  ])('text in %s is refused as ambiguous: %s', (encoding, words) => {
    expect(refusal(encodeIn(encoding, csvOf(words)))).toContain('does not say clearly');
  });

  it('UTF-8 is recognised if nearly all characters beyond ASCII are UTF-8', () => {
    const broken = Buffer.from('Jos\xe9\n', 'latin1');
    for (const character of ['é', '\ufffd'])
      expect(find(Buffer.concat([Buffer.from(character.repeat(10)), broken]))).toBe('utf-8');
    expect(refusal(Buffer.concat([Buffer.from('é'.repeat(9)), broken]))).toContain('does not say clearly');
  });

  it('a specified encoding is used even if the bytes do not fit it', () => {
    expect(find(Buffer.from('caf\xe9', 'latin1'), 'windows-1250')).toBe('windows-1250');
    expect(find(Buffer.from('u1,\xff', 'latin1'), 'utf-8')).toBe('utf-8');
    const reading = findEncoding(Buffer.from('é'), true, 'windows-1252');
    expect(reading.notes).toEqual([expect.stringContaining('valid UTF-8 too')]);
  });

  it('a specified encoding that would garble the file is refused', () => {
    const csv = csvOf('Ann Bob');
    expect(refusal(utf16(csv, true), 'utf-16le')).toContain('the bytes are those of utf-16be');
    expect(refusal(Buffer.from(csv), 'utf-16le')).toContain('its bytes are plain text');
    expect(refusal(utf16(csv, false), 'windows-1252')).toContain('the file is in utf-16le');
  });

  // proves: encoding-exact
  it('words of another code page are never read as windows-1252', () => {
    const words = {
      'windows-1250': ['Dvořák', 'Jiří', 'Kučera', 'Růžička', 'Černý', 'Beneš', 'Králová', 'Novotný'],
      'windows-1254': ['Yılmaz', 'Şahin', 'Yıldız', 'Öztürk', 'Aydın', 'Doğan', 'Kılıç', 'Çetin'],
      'windows-1257': ['Bērziņš', 'Kalniņš', 'Ozoliņš', 'Liepiņš', 'Krūmiņš', 'Rīga', 'Cēsis'],
    };
    for (const [encoding, names] of Object.entries(words)) {
      fc.assert(
        fc.property(fc.subarray(names, { minLength: 1 }), (wordsOfFile) => {
          const bytes = encodeIn(encoding, csvOf(wordsOfFile.join(' ')));
          const isSame = new TextDecoder('windows-1252').decode(bytes) === csvOf(wordsOfFile.join(' '));
          if (!isSame) expect(refusal(bytes), wordsOfFile.join()).toContain('does not say clearly');
        }),
        { numRuns: 40 },
      );
    }
  });
});
