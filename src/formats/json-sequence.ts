import { InputError } from '../domain/errors.ts';
import { MAX_RECORD_BYTES } from '../domain/limits.ts';
import { type JsonListener, JsonWalker } from './json-walker.ts';

const [LF, CR, SPACE, TAB, OPEN, CLOSE] = [10, 13, 32, 9, 123, 125];

/**
 * JSON values that follow one another without a line for each, as NDJSON: side by side (`{…}{…}`), each over several lines, with
 * commas or blanks between. `source` starts behind its byte order mark; that it is UTF-8 is left to whoever reads the records.
 *
 * A record that is no JSON becomes a line that is none either, so that it is refused alone, but only where the next one can be
 * found: the broken one starts a line, did not break at a line end inside a string, and a line that is only `}` comes before one
 * that starts with `{`, at most MAX_RECORD_BYTES later. No JSON has that inside a record. A last record that ends early is such
 * a line too.
 * @throws InputError `invalid_json` with the position where the next record cannot be found.
 */
export async function* sequenceToNdjson(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const sequence = new Sequence();
  for await (const bytes of source) {
    const lines = sequence.take(bytes);
    if (lines.length > 0) yield lines;
  }
  if (sequence.finish()) yield Buffer.of(LF);
}

/** How much of `LF } LF {` was seen last. */
type Boundary = 'nothing' | 'line' | 'brace' | 'braceLine';

class Sequence implements JsonListener {
  readonly #walker = new JsonWalker(this, { sequence: true });
  #complete = 0;
  /** The record under way, or what stands in its place, starts a line. */
  #startsLine = false;
  /** Why it is no JSON; its end is looked for. */
  #problem: InputError | null = null;
  #brokenBytes = 0;
  #boundary: Boundary = 'nothing';

  constructor() {
    this.#walker.watchedDepth = 1;
  }

  take(bytes: Buffer): Buffer {
    const { copy, position } = this.#walker;
    copy.from(bytes);
    for (let at = 0; at < bytes.length; ) {
      at = this.#problem === null ? this.#walk(bytes, at) : this.#passBroken(this.#problem, bytes, at);
    }
    position.pass(bytes.length);
    return copy.take();
  }

  /** Whether a line is still to be ended. */
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

  /** @throws its problem if the next record could not be found. */
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

  /** Copies what is no JSON up to the next record, or the end of the buffer; gives where that is. */
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
      // Behind the brace, or in a blank line.
      if (boundary === 'line' || (boundary === 'braceLine' && byte !== CR)) this.#boundary = 'nothing';
    } else this.#boundary = 'nothing';
  }

  #resume(): void {
    this.#walker.copy.endTurned();
    this.#walker.restart();
    this.#problem = null;
  }
}

/** Of the line that `at` is in, or of the buffer. */
function lineEnd(bytes: Buffer, at: number): number {
  const found = bytes.indexOf(LF, at);
  return found === -1 ? bytes.length : found;
}
