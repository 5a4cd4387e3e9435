import { TextReader } from '../../../src/formats/text-encoding.ts';

/** The characters of a code page of one byte a character, by their bytes. */
export function readCodePage(encoding: string): readonly string[] {
  return Array.from({ length: 256 }, (_, byte) => new TextReader(encoding).read(Buffer.of(byte)));
}

/** Text in a code page. */
export function encodeIn(encoding: string, text: string): Buffer {
  const page = readCodePage(encoding);
  return Buffer.from([...text].map((character) => page.indexOf(character)));
}
