const LF = 10;
/** Up to this length a loop beats a call of `copy`. */
const SHORT_BYTES = 48;

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
