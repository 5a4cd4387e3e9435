import { DamagedFile } from '../domain/errors.ts';
import { MAX_CELL_CHARS, MAX_SHARED_TEXT_BYTES } from '../domain/limits.ts';
import { csvCell } from './csv-text.ts';
import type { XmlHandler } from './xml-reader.ts';

const BLOCK_BYTES = 1024 * 1024;
const STRING_BYTES = 8;

/** The strings that cells of a workbook share: bytes in large blocks, since a million objects would take several times as much. */
export class SharedText {
  readonly #blocks: Buffer[] = [];
  #used = 0;
  #heldBytes = 0;
  /** The block and end of each string. */
  #places = new Uint32Array(1024);
  #count = 0;

  /** @throws DamagedFile if there is no room for it. */
  add(bytes: Buffer): void {
    this.#heldBytes += bytes.length + STRING_BYTES;
    if (this.#heldBytes > MAX_SHARED_TEXT_BYTES)
      throw new DamagedFile('it has more text than is held in memory; save it as CSV and send that');
    let block = this.#blocks.at(-1);
    if (block === undefined || this.#used + bytes.length > block.length) {
      block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, bytes.length));
      this.#blocks.push(block);
      this.#used = 0;
    }
    this.#used += bytes.copy(block, this.#used);
    if (2 * this.#count === this.#places.length) {
      const smaller = this.#places;
      this.#places = new Uint32Array(2 * smaller.length);
      this.#places.set(smaller);
    }
    this.#places.set([this.#blocks.length - 1, this.#used], 2 * this.#count++);
  }

  get(index: number): Buffer | null {
    if (index >= this.#count) return null;
    const block = this.#places[2 * index] as number;
    const isFirst = index === 0 || this.#places[2 * index - 2] !== block;
    const start = isFirst ? 0 : this.#places[2 * index - 1];
    return this.#blocks[block]?.subarray(start, this.#places[2 * index + 1]) ?? null;
  }
}

/** `_x000D_` is how a workbook writes what XML cannot hold. */
export function unescapeText(text: string): string {
  if (!text.includes('_x')) return text;
  return text.replace(/_x([0-9a-fA-F]{4})_/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Reads the part of a workbook that has its shared strings, as cells of CSV. */
export class SharedTextReader implements XmlHandler {
  readonly texts = new SharedText();
  #text = '';
  #inText = false;
  /** True inside the pronunciation of a text, which is not part of it. */
  #inPhonetic = false;

  open(name: string): void {
    if (name === 'si') this.#text = '';
    else if (name === 'rPh') this.#inPhonetic = true;
    else if (name === 't') this.#inText = !this.#inPhonetic;
  }

  close(name: string): void {
    if (name === 't') this.#inText = false;
    else if (name === 'rPh') this.#inPhonetic = false;
    else if (name === 'si') this.texts.add(csvCell(unescapeText(this.#text)));
  }

  text(text: string): void {
    if (!this.#inText) return;
    this.#text += text;
    if (this.#text.length > MAX_CELL_CHARS) {
      throw new DamagedFile(`a text that cells share has more than ${MAX_CELL_CHARS} characters`);
    }
  }
}
