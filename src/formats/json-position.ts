import { type InputError, inputError } from '../domain/errors.ts';

const MARK_BYTES = 3;

/** Where in the document the walk is, for messages; `at` is a position in the current buffer. */
export class JsonPosition {
  /** Byte of the document at which the current buffer, and the current line, start. */
  #bufferStart = 0;
  #lineStart = 0;
  #line = 1;
  /** In the current buffer: where what was complained of stands. */
  brokenAt = 0;

  newLine(at: number): void {
    this.#line++;
    this.#lineStart = this.#bufferStart + at;
  }

  /** Of the first buffer: how many bytes of a byte order mark it starts with. Columns are counted behind it. */
  skipMark(bytes: Buffer): number {
    const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    this.#lineStart = hasMark ? MARK_BYTES : 0;
    return this.#lineStart;
  }

  isLineStart(at: number): boolean {
    return this.#bufferStart + at === this.#lineStart;
  }

  /** The current buffer is done with. */
  pass(bytes: number): void {
    this.#bufferStart += bytes;
  }

  unexpected(byte: number, at: number, context: string): InputError {
    const seen = byte > 32 && byte < 127 ? `'${String.fromCharCode(byte)}'` : `byte 0x${byte.toString(16)}`;
    return this.invalid(`unexpected ${seen} ${context}`, at);
  }

  invalid(what: string, at: number): InputError {
    this.brokenAt = at;
    const byte = this.#bufferStart + at;
    const details = `line ${this.#line}, column ${byte - this.#lineStart + 1} (byte ${byte})`;
    return inputError('invalid_json', `The body is not valid JSON: ${what}`, details);
  }
}
