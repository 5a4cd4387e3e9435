import { Fault } from '../base/errors.ts';
import {
  firstState,
  isPlain,
  JsonPosition,
  tokenBroken,
  tokenEnded,
  tokenState,
  tokenStopped,
  tokenTable,
} from './json-position.ts';

/** Nesting a JSON array body may reach before it is refused as a whole; bounds the parser's stack. */
const MAX_BODY_DEPTH = 100_000;

/** Told of what happens at the top: values inside fewer than `watchedDepth` containers. */
export interface JsonListener {
  /** `first` is the byte that the value starts with, `depth` the number of containers around it. */
  valueStarts(first: number, depth: number): void;
  valueEnds(depth: number): void;
  /** A key as it is written, between its quotes, a character for each byte; `depth` is that of its value. */
  key(raw: string, depth: number): void;
}

/** A key that is longer is cut somewhere behind it. */
const MAX_KEY_BYTES = 256;

/** The tokens that may follow outside of strings, numbers and literals, in the words of messages. */
const expectations = {
  value: 'a value',
  valueOrEnd: 'a value or "]"',
  key: 'a key in quotes',
  keyOrEnd: 'a key in quotes or "}"',
  colon: '":"',
  commaOrEnd: '"," or the end of the array or object',
  nothing: 'nothing after the end',
  next: 'the next value',
  nextOrEnd: 'the next value',
} as const;

const [LF, SPACE, QUOTE, COMMA, COLON] = [10, 32, 34, 44, 58];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125];

/**
 * Checks JSON of any size against the grammar, byte by byte, and copies parts of it as the listener says, white
 * space left out. Nothing is decoded: numbers, escapes and repeated keys come out as they went in. It keeps a
 * number per level of nesting and no value, however long.
 */
export class JsonWalker {
  readonly copy: LineCopy;
  readonly position = new JsonPosition();
  /** Values inside fewer containers than this are told of, and their keys. May change at any time. */
  watchedDepth = 3;
  readonly #listener: JsonListener;
  /** Allowed after a whole document. */
  readonly #afterwards: 'nothing' | 'next';
  /** Containers around, and the byte that closes the innermost; the bytes of the others are in `#closers`, 0 first. */
  #depth = 0;
  #closer = 0;
  #closers: number[] = [];
  #expects: keyof typeof expectations = 'value';
  /** State in `tokenTable`, or 0 outside of tokens. */
  #token = 0;
  #inKey = false;
  #key = '';
  #atStart = true;

  /** With `sequence`, documents follow one another, with blanks or a comma between or nothing at all. */
  constructor(listener: JsonListener, { sequence = false } = {}) {
    this.copy = new LineCopy(sequence);
    this.#listener = listener;
    this.#afterwards = sequence ? 'next' : 'nothing';
  }

  /** Inside a string, number or literal. */
  get inToken(): boolean {
    return this.#token !== 0;
  }

  get inString(): boolean {
    return this.#token >= tokenState.string && this.#token <= tokenState.lastOfString;
  }

  /** A document is complete, and nothing has come of another. */
  get isComplete(): boolean {
    return this.#expects === 'nothing' || this.#expects === 'next' || this.#expects === 'nextOrEnd';
  }

  /**
   * The lines that came of `bytes`. A byte order mark at the start is passed over; it must come whole.
   * @throws InputError `invalid_json` with the position, or what the listener throws.
   */
  walk(bytes: Buffer): Buffer {
    this.copy.from(bytes);
    this.walkFrom(bytes, this.#atStart ? this.position.skipMark(bytes) : 0);
    this.#atStart = false;
    this.position.pass(bytes.length);
    return this.copy.take();
  }

  /** The rest of a buffer that `copy` works on. Throws as `walk` does. */
  walkFrom(bytes: Buffer, start: number): void {
    for (let at = start; at < bytes.length; ) {
      at = this.#token === 0 ? this.#structure(bytes, at) : this.#inToken(bytes, at);
    }
  }

  /** Gives up the document it is in: the next may begin. */
  restart(): void {
    this.#depth = 0;
    this.#closer = 0;
    this.#closers = [];
    this.#token = 0;
    this.#inKey = false;
    this.#expects = 'next';
  }

  /** @throws InputError `invalid_json` unless the document is complete. */
  finish(): void {
    if (!this.isComplete) throw this.position.invalid('it ends early', 0);
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
      throw this.position.unexpected(bytes[at] as number, at, 'in a string, number or literal');
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
      this.#expects = this.#closer === CLOSE_OBJECT ? 'key' : 'value';
    else if (byte === COMMA && expects === 'next') this.#expects = 'nextOrEnd';
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) this.#close(byte, at);
    else this.#startValue(byte, at);
    return at + 1;
  }

  #whiteSpace(byte: number, at: number): number {
    if (byte !== SPACE && byte !== LF && byte !== 13 && byte !== 9) throw this.#unexpected(byte, at);
    if (byte === LF) this.position.newLine(at + 1);
    this.copy.leaveOut(at);
    return at + 1;
  }

  #startValue(byte: number, at: number): void {
    const expects = this.#expects;
    if (expects !== 'value' && expects !== 'valueOrEnd' && expects !== 'next' && expects !== 'nextOrEnd')
      throw this.#unexpected(byte, at);
    const isContainer = byte === OPEN_ARRAY || byte === OPEN_OBJECT;
    const token = isContainer ? 0 : firstState(byte);
    if (token === tokenBroken) throw this.#unexpected(byte, at);
    if (this.#depth < this.watchedDepth) {
      this.copy.at = at;
      this.#listener.valueStarts(byte, this.#depth);
    }
    this.#token = token;
    if (!isContainer) return;
    if (this.#depth === MAX_BODY_DEPTH)
      throw this.position.invalid(`it is nested more than ${MAX_BODY_DEPTH} levels deep`, at);
    this.#closers[this.#depth++] = this.#closer;
    this.#closer = byte === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY;
    this.#expects = byte === OPEN_OBJECT ? 'keyOrEnd' : 'valueOrEnd';
  }

  #close(byte: number, at: number): void {
    const empty = byte === CLOSE_OBJECT ? 'keyOrEnd' : 'valueOrEnd';
    if (this.#closer !== byte || (this.#expects !== empty && this.#expects !== 'commaOrEnd'))
      throw this.#unexpected(byte, at);
    this.#closer = this.#closers[--this.#depth] as number;
    this.#endValue(at + 1);
  }

  #endValue(end: number): void {
    const depth = this.#depth;
    this.#expects = depth === 0 ? this.#afterwards : 'commaOrEnd';
    if (depth >= this.watchedDepth) return;
    this.copy.at = end;
    this.#listener.valueEnds(depth);
  }

  #startKey(): void {
    this.#inKey = true;
    this.#key = '';
    this.#token = tokenState.string;
  }

  #keepKey(bytes: Buffer, start: number, end: number): void {
    if (this.#depth >= this.watchedDepth || this.#key.length > MAX_KEY_BYTES) return;
    this.#key += bytes.toString('latin1', start, Math.min(end, start + MAX_KEY_BYTES + 1));
  }

  #endKey(): void {
    this.#inKey = false;
    this.#expects = 'colon';
    const depth = this.#depth;
    if (depth < this.watchedDepth) this.#listener.key(this.#key, depth);
  }

  #unexpected(byte: number, at: number): Error {
    return this.position.unexpected(byte, at, `where ${expectations[this.#expects]} is expected`);
  }
}

const plainAscii = /^[ -[\]-~]*$/;

/** Keys may be written with escapes; one that was cut cannot be read and is none that anybody looks for. */
export function decodeKey(raw: string): string {
  if (raw.length > MAX_KEY_BYTES) return '';
  if (plainAscii.test(raw)) return raw;
  try {
    return String(JSON.parse(`"${Buffer.from(raw, 'latin1').toString('utf8')}"`));
  } catch {
    return '';
  }
}

const CR = 13;

/** Up to this length a loop beats a call of `copy`. */
const SHORT_BYTES = 48;

/** At the edges of a buffer: a line feed may find no comma or bracket there whose place it can take, nor a blank. */
const SPARE_BYTES = 4;

/** Copies stretches of buffers that pass by, one line per value; what is left out in between joins the rest. */
class LineCopy {
  /** The position in the current buffer to which `start` and `end` apply. */
  at = 0;
  #source: Buffer = Buffer.alloc(0);
  #copying = false;
  /** Start of what is to be copied and is not yet. */
  #from = 0;
  #out: Buffer = Buffer.alloc(0);
  #length = 0;
  readonly #dense: boolean;

  /** `dense`: nothing may stand between values, of which the shortest has two bytes. */
  constructor(dense: boolean) {
    this.#dense = dense;
  }

  get copying(): boolean {
    return this.#copying;
  }

  /** Goes on with the next buffer. */
  from(source: Buffer): void {
    this.#source = source;
    this.#from = 0;
    this.#out = Buffer.allocUnsafeSlow(source.length + (this.#dense ? source.length >> 1 : 0) + SPARE_BYTES);
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

  /** Copies the value as it is from `position` on: it is no JSON. Blanks between tokens become one: `1 2` must not become `12`. */
  break(position: number, betweenTokens: boolean): void {
    if (this.#copying) {
      this.#flush(position);
      const isApart = position === 0 || (this.#source[position - 1] as number) <= SPACE;
      if (betweenTokens && isApart) this.#out[this.#length++] = CR;
    }
    this.#copying = true;
    this.#from = position;
  }

  /** A line feed within the value: as a carriage return it is a blank between values still, and an error in a string. */
  turnLine(position: number): void {
    this.#flush(position);
    this.#out[this.#length++] = CR;
    this.#from = position + 1;
  }

  /** Ends the line at the line feed that was turned last; nothing has come since. */
  endTurned(): void {
    if (this.#length > 0) this.#length--;
    this.#out[this.#length++] = LF;
    this.#copying = false;
  }

  /** Returns the copied bytes of the current buffer. */
  take(): Buffer {
    if (this.#copying) this.#flush(this.#source.length);
    // Beyond its end a buffer forgets what is written to it.
    if (this.#length > this.#out.length)
      throw new Fault('more lines came of a buffer than there is room for');
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
