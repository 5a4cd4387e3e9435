import { type InputError, inputError } from '../domain/errors.ts';
import { MAX_BODY_DEPTH } from '../domain/limits.ts';
import { JsonNesting } from './json-nesting.ts';
import {
  firstState,
  isPlain,
  tokenBroken,
  tokenEnded,
  tokenState,
  tokenStopped,
  tokenTable,
} from './json-tokens.ts';

/** Told of what happens at the top: values inside fewer than WATCHED_DEPTH containers. */
export interface JsonListener {
  /** `first` is the byte that the value starts with, `depth` the number of containers around it. */
  valueStarts(first: number, depth: number): void;
  valueEnds(depth: number): void;
  /** A key of the outermost object as it is written, between its quotes; cut at MAX_KEY_BYTES. */
  key(raw: string): void;
}

const WATCHED_DEPTH = 3;
const MAX_KEY_BYTES = 256;

/** What may come next outside of strings, numbers and literals; in words, for the message. */
const expectations = {
  value: 'a value',
  valueOrEnd: 'a value or "]"',
  key: 'a key in quotes',
  keyOrEnd: 'a key in quotes or "}"',
  colon: '":"',
  commaOrEnd: '"," or the end of the array or object',
  nothing: 'nothing after the end',
} as const;

const [LF, SPACE, QUOTE, COMMA, COLON] = [10, 32, 34, 44, 58];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125];

/**
 * Checks JSON of any size against the grammar, byte by byte, and copies parts of it as the listener says, white
 * space left out. Nothing is decoded: numbers, escapes and repeated keys come out as they went in. It keeps a byte
 * per level of nesting and no value, however long.
 */
export class JsonWalker {
  readonly copy = new LineCopy();
  readonly #listener: JsonListener;
  readonly #nesting = new JsonNesting(MAX_BODY_DEPTH);
  readonly #position = new JsonPosition();
  #expects: keyof typeof expectations = 'value';
  /** State in `tokenTable`, or 0 outside of tokens. */
  #token = 0;
  #inKey = false;
  #key = '';

  constructor(listener: JsonListener) {
    this.#listener = listener;
  }

  /** The document starts after a byte order mark of so many bytes. */
  skip(bytes: number): void {
    this.#position.skip(bytes);
  }

  /**
   * The lines that came of `bytes`.
   * @throws InputError `invalid_json` with the position, or what the listener throws.
   */
  walk(bytes: Buffer): Buffer {
    this.copy.from(bytes);
    for (let at = 0; at < bytes.length; ) {
      at = this.#token === 0 ? this.#structure(bytes, at) : this.#inToken(bytes, at);
    }
    this.#position.pass(bytes.length);
    return this.copy.take();
  }

  /** @throws InputError `invalid_json` unless the document is complete. */
  finish(): void {
    if (this.#expects !== 'nothing') throw this.#position.invalid('it ends early', 0);
  }

  #inToken(bytes: Buffer, start: number): number {
    let state = this.#token;
    let at = start;
    while (at < bytes.length) {
      const next = tokenTable[state * 256 + (bytes[at] as number)] as number;
      if (next >= tokenStopped) {
        if (this.#inKey) this.#keepKey(bytes, start, at);
        return this.#endToken(bytes, at, next);
      }
      state = next;
      at++;
      if (state === tokenState.string) while (at < bytes.length && isPlain[bytes[at] as number] === 1) at++;
    }
    if (this.#inKey) this.#keepKey(bytes, start, at);
    this.#token = state;
    return at;
  }

  #endToken(bytes: Buffer, at: number, result: number): number {
    if (result === tokenBroken) {
      throw this.#position.unexpected(bytes[at] as number, at, 'in a string, number or literal');
    }
    const end = result === tokenEnded ? at + 1 : at;
    this.#token = 0;
    if (this.#inKey) this.#endKey();
    else this.#endValue(end);
    return end;
  }

  #structure(bytes: Buffer, at: number): number {
    const byte = bytes[at] as number;
    if (byte <= SPACE) return this.#whiteSpace(byte, at);
    const expects = this.#expects;
    if (byte === QUOTE && (expects === 'key' || expects === 'keyOrEnd')) this.#startKey();
    else if (byte === COLON && expects === 'colon') this.#expects = 'value';
    else if (byte === COMMA && expects === 'commaOrEnd')
      this.#expects = this.#nesting.inObject ? 'key' : 'value';
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) this.#close(byte, at);
    else this.#startValue(byte, at);
    return at + 1;
  }

  #whiteSpace(byte: number, at: number): number {
    if (byte !== SPACE && byte !== LF && byte !== 13 && byte !== 9) throw this.#unexpected(byte, at);
    if (byte === LF) this.#position.newLine(at + 1);
    this.copy.leaveOut(at);
    return at + 1;
  }

  #startValue(byte: number, at: number): void {
    if (this.#expects !== 'value' && this.#expects !== 'valueOrEnd') throw this.#unexpected(byte, at);
    const isContainer = byte === OPEN_ARRAY || byte === OPEN_OBJECT;
    const token = isContainer ? 0 : firstState(byte);
    if (token === tokenBroken) throw this.#unexpected(byte, at);
    if (this.#nesting.depth < WATCHED_DEPTH) {
      this.copy.at = at;
      this.#listener.valueStarts(byte, this.#nesting.depth);
    }
    this.#token = token;
    if (!isContainer) return;
    if (!this.#nesting.push(byte === OPEN_OBJECT)) {
      throw this.#position.invalid(`it is nested more than ${MAX_BODY_DEPTH} levels deep`, at);
    }
    this.#expects = byte === OPEN_OBJECT ? 'keyOrEnd' : 'valueOrEnd';
  }

  #close(byte: number, at: number): void {
    const { inObject, depth } = this.#nesting;
    const empty = inObject ? 'keyOrEnd' : 'valueOrEnd';
    const fits = depth > 0 && inObject === (byte === CLOSE_OBJECT);
    if (!fits || (this.#expects !== empty && this.#expects !== 'commaOrEnd'))
      throw this.#unexpected(byte, at);
    this.#nesting.pop();
    this.#endValue(at + 1);
  }

  #endValue(end: number): void {
    const { depth } = this.#nesting;
    this.#expects = depth === 0 ? 'nothing' : 'commaOrEnd';
    if (depth >= WATCHED_DEPTH) return;
    this.copy.at = end;
    this.#listener.valueEnds(depth);
  }

  #startKey(): void {
    this.#inKey = true;
    this.#key = '';
    this.#token = tokenState.string;
  }

  #keepKey(bytes: Buffer, start: number, end: number): void {
    if (this.#nesting.depth > 1 || this.#key.length >= MAX_KEY_BYTES) return;
    this.#key += bytes.toString('latin1', start, Math.min(end, start + MAX_KEY_BYTES));
  }

  #endKey(): void {
    this.#inKey = false;
    this.#expects = 'colon';
    if (this.#nesting.depth === 1) this.#listener.key(this.#key);
  }

  #unexpected(byte: number, at: number): Error {
    return this.#position.unexpected(byte, at, `where ${expectations[this.#expects]} is expected`);
  }
}

/** Where in the document the walk is, for messages; `at` is a position in the current buffer. */
class JsonPosition {
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

/** Up to this length a loop beats a call of `copy`. */
const SHORT_BYTES = 48;

/** Copies stretches of buffers that pass by, one line per value; what is left out in between joins the rest. */
class LineCopy {
  /** Where in the current buffer a `start` or `end` applies. */
  at = 0;
  #source: Buffer = Buffer.alloc(0);
  #copying = false;
  /** Start of what is to be copied and is not yet. */
  #from = 0;
  #out: Buffer = Buffer.alloc(0);
  #length = 0;

  get copying(): boolean {
    return this.#copying;
  }

  /** Goes on with the next buffer. */
  from(source: Buffer): void {
    this.#source = source;
    this.#from = 0;
    // One more than goes in: a line feed may find no comma or bracket whose place it can take.
    this.#out = Buffer.allocUnsafeSlow(source.length + 1);
    this.#length = 0;
  }

  start(): void {
    this.#copying = true;
    this.#from = this.at;
  }

  /** The byte at this position is not copied. */
  leaveOut(position: number): void {
    if (!this.#copying) return;
    this.#flush(position);
    this.#from = position + 1;
  }

  /** Ends the line. */
  end(): void {
    this.#flush(this.at);
    this.#out[this.#length++] = LF;
    this.#copying = false;
  }

  /** What was copied of the current buffer. */
  take(): Buffer {
    if (this.#copying) this.#flush(this.#source.length);
    return this.#out.subarray(0, this.#length);
  }

  #flush(to: number): void {
    const source = this.#source;
    const length = to - this.#from;
    if (length > SHORT_BYTES) source.copy(this.#out, this.#length, this.#from, to);
    else for (let i = 0; i < length; i++) this.#out[this.#length + i] = source[this.#from + i] as number;
    this.#length += length;
  }
}
