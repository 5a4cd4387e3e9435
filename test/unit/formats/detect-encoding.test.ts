import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findEncoding } from '../../../src/formats/detect-encoding.ts';
import { encodeIn } from './code-page.ts';

function utf16(text: string, bigEndian: boolean): Buffer {
  const bytes = Buffer.from(text, 'utf16le');
  return bigEndian ? bytes.swap16() : bytes;
}

/** A record for each word. */
const csvOf = (words: string) =>
  `user_id,name\n${words
    .split(' ')
    .map((word, at) => `u${at},${word}\n`)
    .join('')}`;

const find = (bytes: Buffer, said: string | null = null) => findEncoding(bytes, true, said).name;
const refusal = (bytes: Buffer, said: string | null = null): string => {
  try {
    return `read as ${find(bytes, said)}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

describe('the encoding of a file', () => {
  it('is UTF-8 where the bytes are, though what is looked at ends within a character', () => {
    for (const text of ['', 'a', 'id,name', 'é', 'a\0b']) expect(find(Buffer.from(text))).toBe('utf-8');
    const cut = Buffer.from('user_id,name\nu1,日').subarray(0, -1);
    expect(findEncoding(cut, false, null).name).toBe('utf-8');
    expect(() => findEncoding(cut, true, null)).toThrow('byte 16, line 2, column 4');
  });

  it('is what its mark says, whatever is said of it', () => {
    expect(findEncoding(Buffer.from('\ufeffa'), true, null)).toEqual({
      name: 'utf-8',
      notes: [],
    });
    expect(find(utf16('\ufeffa', false))).toBe('utf-16le');
    const marked = findEncoding(utf16('\ufeffa', true), true, 'windows-1252');
    expect(marked).toMatchObject({ name: 'utf-16be' });
    expect(marked.notes).toEqual([expect.stringContaining('byte order mark of utf-16be')]);
    expect(refusal(Buffer.from([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0]))).toContain('UTF-32');
  });

  it('is UTF-16 without a mark where NULs stand in one half of each character', () => {
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
  ])('is windows-1252 where that is plain: %s', (words) => {
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
  ])('is not guessed for text in %s: %s', (encoding, words) => {
    expect(refusal(encodeIn(encoding, csvOf(words)))).toContain('does not say clearly');
  });

  it('is UTF-8 where nearly all characters beyond ASCII are', () => {
    const broken = Buffer.from('Jos\xe9\n', 'latin1');
    expect(find(Buffer.concat([Buffer.from('é'.repeat(10)), broken]))).toBe('utf-8');
    expect(refusal(Buffer.concat([Buffer.from('é'.repeat(9)), broken]))).toContain('does not say clearly');
  });

  it('is what is said, in whatever it is written', () => {
    expect(find(Buffer.from('caf\xe9', 'latin1'), 'windows-1250')).toBe('windows-1250');
    expect(find(Buffer.from('u1,\xff', 'latin1'), 'utf-8')).toBe('utf-8');
    const both = findEncoding(Buffer.from('é'), true, 'windows-1252');
    expect(both.notes).toEqual([expect.stringContaining('valid UTF-8 too')]);
  });

  it('is refused where what is said would turn it into other characters', () => {
    const csv = csvOf('Ann Bob');
    expect(refusal(utf16(csv, true), 'utf-16le')).toContain('the bytes are those of utf-16be');
    expect(refusal(Buffer.from(csv), 'utf-16le')).toContain('its bytes are plain text');
    expect(refusal(utf16(csv, false), 'windows-1252')).toContain('the file is in utf-16le');
  });

  // proves: encoding-exact
  it('is never windows-1252 for text of a code page in which its words would be others', () => {
    const words = {
      'windows-1250': ['Dvořák', 'Jiří', 'Kučera', 'Růžička', 'Černý', 'Beneš', 'Králová', 'Novotný'],
      'windows-1254': ['Yılmaz', 'Şahin', 'Yıldız', 'Öztürk', 'Aydın', 'Doğan', 'Kılıç', 'Çetin'],
      'windows-1257': ['Bērziņš', 'Kalniņš', 'Ozoliņš', 'Liepiņš', 'Krūmiņš', 'Rīga', 'Cēsis'],
    };
    for (const [encoding, names] of Object.entries(words)) {
      fc.assert(
        fc.property(fc.subarray(names, { minLength: 1 }), (some) => {
          const bytes = encodeIn(encoding, csvOf(some.join(' ')));
          const isSame = new TextDecoder('windows-1252').decode(bytes) === csvOf(some.join(' '));
          if (!isSame) expect(refusal(bytes), some.join()).toContain('does not say clearly');
        }),
        { numRuns: 40 },
      );
    }
  });
});
