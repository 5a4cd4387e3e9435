import { type InputError, inputError } from '../domain/errors.ts';

/** Where in the document the walk is, for messages; `at` is a position in the current buffer. */
export class JsonPosition {
  /** Byte of the document at which the current buffer, and the current line, start. */
  #bufferStart = 0;
  #lineStart = 0;
  #line = 1;

  newLine(at: number): void {
    this.#line++;
    this.#lineStart = this.#bufferStart + at;
  }

  /** The document starts after a byte order mark. */
  skip(bytes: number): void {
    this.#bufferStart = bytes;
    this.#lineStart = bytes;
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
    const byte = this.#bufferStart + at;
    const details = `line ${this.#line}, column ${byte - this.#lineStart + 1} (byte ${byte})`;
    return inputError('invalid_json', `The body is not valid JSON: ${what}`, details);
  }
}
