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

/** Maximum nesting of a body. Bounds the walker's stack. */
const MAX_BODY_DEPTH = 100_000;

/** Receives the values that are inside fewer than `watchedDepth` containers. */
export interface JsonListener {
  /** `first` is the first byte. `depth` is the number of containers around the value. */
  valueStarts(first: number, depth: number): void;
  valueEnds(depth: number): void;
  /** `raw` is the key without quotes, one character per byte. `depth` is the depth of its value. */
  key(raw: string, depth: number): void;
}

/** Keys that are longer than this are truncated. */
const MAX_KEY_BYTES = 256;

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

const [TAB, LF, CR, SPACE, QUOTE, COMMA, COLON] = [9, 10, 13, 32, 34, 44, 58];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125];

/**
 * Checks JSON of any size against the grammar, byte by byte, and copies the parts that the listener
 * selects, without white space. Numbers, escapes and repeated keys stay unchanged. The memory that
 * is needed is one number per level of nesting.
 */
export class JsonWalker {
  readonly copy: LineCopy;
  readonly position = new JsonPosition();
  /** Values and keys at a lower depth are reported. Callers may change it while the walker runs. */
  watchedDepth = 3;
  readonly #listener: JsonListener;
  /** Continuation that is allowed after a complete document. */
  readonly #afterwards: 'nothing' | 'next';
  /**
   * `#closer` is the closing byte of the innermost container. `#closers` has those of the outer
   * containers.
   */
  #depth = 0;
  #closer = 0;
  #closers: number[] = [];
  #expects: keyof typeof expectations = 'value';
  /** State in `tokenTable`, or 0 outside tokens. */
  #token = 0;
  #inKey = false;
  #key = '';
  #atStart = true;

  /**
   * If `sequence` is true, documents may follow one another, separated by blanks, a comma or
   * nothing.
   */
  constructor(listener: JsonListener, { sequence = false } = {}) {
    this.copy = new LineCopy(sequence);
    this.#listener = listener;
    this.#afterwards = sequence ? 'next' : 'nothing';
  }

  get inToken(): boolean {
    return this.#token !== 0;
  }

  get inString(): boolean {
    return this.#token >= tokenState.string && this.#token <= tokenState.lastOfString;
  }

  /** True between documents. */
  get isComplete(): boolean {
    return this.#expects === 'nothing' || this.#expects === 'next' || this.#expects === 'nextOrEnd';
  }

  /**
   * Walks through a buffer and returns the lines that are copied from it. Skips a byte order mark,
   * which must not be split between buffers.
   * @throws InputError `invalid_json` with the position. Errors from the listener are also thrown.
   */
  walk(bytes: Buffer): Buffer {
    this.copy.from(bytes);
    this.walkFrom(bytes, this.#atStart ? this.position.skipMark(bytes) : 0);
    this.#atStart = false;
    this.position.pass(bytes.length);
    return this.copy.take();
  }

  /** Walks the rest of a buffer already passed to `copy`. Throws the same errors as `walk`. */
  walkFrom(bytes: Buffer, start: number): void {
    let at = start;
    while (at < bytes.length) {
      at = this.#token === 0 ? this.#structure(bytes, at) : this.#inToken(bytes, at);
    }
  }

  restart(): void {
    this.#depth = 0;
    this.#closer = 0;
    this.#closers = [];
    this.#token = 0;
    this.#inKey = false;
    this.#expects = 'next';
  }

  /**
   * Must be called at the end of the input.
   * @throws InputError `invalid_json` if the document is not complete.
   */
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
    if (byte !== SPACE && byte !== LF && byte !== CR && byte !== TAB) throw this.#unexpected(byte, at);
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

/** Decodes the escapes. Returns '' for a truncated key, because no known key is that long. */
export function decodeKey(raw: string): string {
  if (raw.length > MAX_KEY_BYTES) return '';
  if (plainAscii.test(raw)) return raw;
  try {
    return String(JSON.parse(`"${Buffer.from(raw, 'latin1').toString('utf8')}"`));
  } catch {
    return '';
  }
}

/** Up to this number of bytes, a loop is faster than `copy`. */
const SHORT_BYTES = 48;

/**
 * Space for line feeds. A line feed usually replaces a comma, bracket or blank, but at a buffer's
 * edge it may need its own byte.
 */
const SPARE_BYTES = 4;

/**
 * Copies parts of streamed buffers, one line per value. If a byte is left out, the parts on both
 * sides of it are joined.
 */
class LineCopy {
  /** Position in the current buffer at which `start` begins to copy and `end` stops. */
  at = 0;
  #source: Buffer = Buffer.alloc(0);
  #copying = false;
  /** First byte of the current buffer that is not copied yet. */
  #from = 0;
  #out: Buffer = Buffer.alloc(0);
  #length = 0;
  readonly #dense: boolean;

  /**
   * With `dense`, values may have no separator, so the output needs space for a line feed after
   * each.
   */
  constructor(dense: boolean) {
    this.#dense = dense;
  }

  get copying(): boolean {
    return this.#copying;
  }

  from(source: Buffer): void {
    this.#source = source;
    this.#from = 0;
    this.#out = Buffer.allocUnsafeSlow((this.#dense ? 2 : 1) * source.length + SPARE_BYTES);
    this.#length = 0;
  }

  start(): void {
    this.#copying = true;
    this.#from = this.at;
  }

  leaveOut(position: number): void {
    if (!this.#copying) return;
    this.#flush(position);
    this.#from = position + 1;
  }

  end(): void {
    this.#flush(this.at);
    this.#out[this.#length++] = LF;
    this.#copying = false;
  }

  /**
   * Copies an invalid value unchanged. Keeps a blank between tokens, because `1 2` must not become
   * `12`.
   */
  break(position: number, betweenTokens: boolean): void {
    if (this.#copying) {
      this.#flush(position);
      const isApart = position === 0 || (this.#source[position - 1] as number) <= SPACE;
      if (betweenTokens && isApart) this.#out[this.#length++] = CR;
    }
    this.#copying = true;
    this.#from = position;
  }

  /**
   * Replaces an LF by a CR. Like an LF, a CR is a blank between tokens and an error in a string.
   */
  turnLine(position: number): void {
    this.#flush(position);
    this.#out[this.#length++] = CR;
    this.#from = position + 1;
  }

  /** Turns the CR that was copied last into an LF. */
  endTurned(): void {
    if (this.#length > 0) this.#length--;
    this.#out[this.#length++] = LF;
    this.#copying = false;
  }

  take(): Buffer {
    if (this.#copying) this.#flush(this.#source.length);
    // Node does not report a write past the end of the buffer.
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
