import { Fault } from '../domain/errors.ts';

const [LF, CR, SPACE] = [10, 13, 32];

/** Up to this length a loop beats a call of `copy`. */
const SHORT_BYTES = 48;

/** At the edges of a buffer: a line feed may find no comma or bracket there whose place it can take, nor a blank. */
const SPARE_BYTES = 4;

/** Copies stretches of buffers that pass by, one line per value; what is left out in between joins the rest. */
export class LineCopy {
  /** Where in the current buffer a `start` or `end` applies. */
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

  /**
   * From `position` on the value is no JSON and is copied as it is. Between tokens, blanks that were left out come back as one:
   * `1 2` must not become `12`.
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

  /** What was copied of the current buffer. */
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
