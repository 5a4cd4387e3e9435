import { InputError } from '../base/errors.ts';
import { MAX_RECORD_BYTES } from '../base/limits.ts';
import { type JsonListener, JsonWalker } from './json-walker.ts';

export interface LineLayout {
  /** `cr`: lines end with CR only. `rs`: U+001E precedes each record, as in RFC 7464. */
  readonly ends: 'lf' | 'cr' | 'rs';
  readonly commas: boolean;
}

export const plainLines: LineLayout = { ends: 'lf', commas: false };

export function isPlainLines({ ends, commas }: LineLayout): boolean {
  return ends === 'lf' && !commas;
}

const [LF, CR, SPACE, TAB, RS, COMMA] = [10, 13, 32, 9, 0x1e, 44];

const MAX_BLANKS_AFTER_COMMA = 1_024;

/**
 * Yields plain NDJSON. Bytes are replaced but never moved, so positions remain valid and an invalid
 * record stays invalid. In a JSON text sequence, an LF inside a record becomes a CR, which is
 * likewise allowed between tokens and refused in strings. A comma at a line end becomes a blank.
 */
export async function* plainLinesOf(
  source: AsyncIterable<Buffer>,
  layout: LineLayout,
): AsyncGenerator<Buffer> {
  const separators = layout.ends === 'rs' ? new Separators() : null;
  const commas = layout.commas ? new Commas() : null;
  for await (const bytes of source) {
    // The bytes belong to the caller, so only a copy is changed.
    const copy = Buffer.from(bytes);
    if (layout.ends === 'cr') exchange(copy, CR, LF);
    separators?.exchange(copy);
    const text = commas === null ? copy : commas.blank(copy);
    if (text.length > 0) yield text;
  }
  if (commas !== null && commas.pending.length > 0) yield commas.end();
}

function exchange(bytes: Buffer, from: number, to: number): void {
  for (let at = bytes.indexOf(from); at !== -1; at = bytes.indexOf(from, at + 1)) bytes[at] = to;
}

class Separators {
  #isFirst = true;

  /** No record ends at the first separator, so it becomes a blank. */
  exchange(bytes: Buffer): void {
    exchange(bytes, LF, CR);
    const first = this.#isFirst ? bytes.indexOf(RS) : -1;
    if (first !== -1) {
      bytes[first] = SPACE;
      this.#isFirst = false;
    }
    exchange(bytes, RS, LF);
  }
}

class Commas {
  /** A comma that may be the last of its line, and the blanks after it. */
  pending: Buffer = Buffer.alloc(0);

  blank(added: Buffer): Buffer {
    const bytes = this.pending.length === 0 ? added : Buffer.concat([this.pending, added]);
    for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, end + 1)) {
      const at = commaBefore(bytes, end);
      if (at !== -1) bytes[at] = SPACE;
    }
    const open = commaBefore(bytes, bytes.length);
    const whole = open === -1 ? bytes.length : open;
    this.pending = Buffer.from(bytes.subarray(whole));
    return bytes.subarray(0, whole);
  }

  end(): Buffer {
    this.pending[0] = SPACE;
    return this.pending;
  }
}

/** Returns the position of a comma followed only by blanks up to `end`, or -1. */
function commaBefore(bytes: Buffer, end: number): number {
  const min = Math.max(0, end - 1 - MAX_BLANKS_AFTER_COMMA);
  let at = end - 1;
  while (at >= min && (bytes[at] === SPACE || bytes[at] === TAB || bytes[at] === CR)) at--;
  return at >= min && bytes[at] === COMMA ? at : -1;
}

const [OPEN, CLOSE] = [123, 125];

/**
 * Yields the values of a JSON sequence as NDJSON. Values may be adjacent (`{…}{…}`), span lines,
 * and have commas or blanks between them. `source` starts after its byte order mark. UTF-8 is not
 * checked.
 *
 * An incomplete last record becomes an invalid line. So does any other invalid record if the next
 * record can be found. This requires:
 * - The next record starts with `{` on a new line, after a line of only `}`. Valid JSON never has
 *   these two lines inside a record.
 * - Both lines are less than MAX_RECORD_BYTES after the error.
 * - The invalid record starts on a new line, and its error is not a line break in a string.
 * @throws InputError `invalid_json` with the position if the next record cannot be found.
 */
export async function* sequenceToNdjson(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const sequence = new Sequence();
  for await (const bytes of source) {
    const lines = sequence.take(bytes);
    if (lines.length > 0) yield lines;
  }
  if (sequence.finish()) yield Buffer.of(LF);
}

class Sequence implements JsonListener {
  readonly #walker = new JsonWalker(this, { sequence: true });
  #complete = 0;
  /** True if the current record, valid or not, begins a line. */
  #startsLine = false;
  /** The error of an invalid record while its end is searched for. */
  #problem: InputError | null = null;
  #brokenBytes = 0;
  /** Part of the boundary `LF } LF {` read so far. */
  #boundary: 'nothing' | 'line' | 'brace' | 'braceLine' = 'nothing';

  constructor() {
    this.#walker.watchedDepth = 1;
  }

  take(bytes: Buffer): Buffer {
    const { copy, position } = this.#walker;
    copy.from(bytes);
    let at = 0;
    while (at < bytes.length) {
      at = this.#problem === null ? this.#walk(bytes, at) : this.#passBroken(this.#problem, bytes, at);
    }
    position.pass(bytes.length);
    return copy.take();
  }

  /** Returns true if the last line still needs its line feed. */
  finish(): boolean {
    if (this.#problem !== null) {
      if (this.#boundary === 'brace' || this.#boundary === 'braceLine') return true;
      throw this.#problem;
    }
    if (this.#complete === 0) this.#walker.finish();
    return this.#walker.copy.copying;
  }

  valueStarts(): void {
    const { copy, position } = this.#walker;
    this.#startsLine = position.isLineStart(copy.at);
    copy.start();
  }

  valueEnds(): void {
    this.#complete++;
    this.#walker.copy.end();
  }

  key(): void {}

  #walk(bytes: Buffer, start: number): number {
    try {
      this.#walker.walkFrom(bytes, start);
      return bytes.length;
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      this.#break(error, bytes);
      return this.#walker.position.brokenAt;
    }
  }

  /**
   * Begins the search for the record that follows an invalid record.
   * @throws `problem` if the next record cannot be found.
   */
  #break(problem: InputError, bytes: Buffer): void {
    const { copy, position, inString, inToken } = this.#walker;
    const at = position.brokenAt;
    if (!copy.copying) this.#startsLine = position.isLineStart(at);
    if (!this.#startsLine || (inString && (bytes[at] === LF || bytes[at] === CR))) throw problem;
    copy.break(at, !inToken);
    this.#problem = problem;
    this.#brokenBytes = 0;
    this.#boundary = position.isLineStart(at) ? 'line' : 'nothing';
  }

  /**
   * Copies invalid bytes up to the next record or the buffer's end. Returns the position reached.
   */
  #passBroken(problem: InputError, bytes: Buffer, start: number): number {
    for (let at = start; at < bytes.length; at++) {
      if (this.#boundary === 'nothing') at = lineEnd(bytes, at);
      if (this.#brokenBytes + at - start > MAX_RECORD_BYTES) throw problem;
      if (at === bytes.length) break;
      if (this.#boundary === 'braceLine' && bytes[at] === OPEN) {
        this.#resume();
        return at;
      }
      this.#look(bytes[at] as number, at);
    }
    this.#brokenBytes += bytes.length - start;
    return bytes.length;
  }

  #look(byte: number, at: number): void {
    const boundary = this.#boundary;
    if (byte === LF) {
      this.#walker.position.newLine(at + 1);
      this.#walker.copy.turnLine(at);
      this.#boundary = boundary === 'brace' || boundary === 'braceLine' ? 'braceLine' : 'line';
    } else if (byte === CLOSE && boundary === 'line') this.#boundary = 'brace';
    else if (byte === CR || byte === SPACE || byte === TAB) {
      // The brace is not alone on its line, or a blank line follows it.
      if (boundary === 'line' || (boundary === 'braceLine' && byte !== CR)) this.#boundary = 'nothing';
    } else this.#boundary = 'nothing';
  }

  #resume(): void {
    this.#walker.copy.endTurned();
    this.#walker.restart();
    this.#problem = null;
  }
}

function lineEnd(bytes: Buffer, at: number): number {
  const next = bytes.indexOf(LF, at);
  return next === -1 ? bytes.length : next;
}
