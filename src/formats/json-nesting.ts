/** Which containers are open, innermost last: one byte each, up to a bound. */
export class JsonNesting {
  depth = 0;
  /** The innermost container is an object. */
  inObject = false;
  readonly #maxDepth: number;
  #objects = new Uint8Array(64);

  constructor(maxDepth: number) {
    this.#maxDepth = maxDepth;
  }

  /** False if that would be too deep. */
  push(isObject: boolean): boolean {
    if (this.depth === this.#maxDepth) return false;
    if (this.depth === this.#objects.length) {
      const grown = new Uint8Array(this.depth * 2);
      grown.set(this.#objects);
      this.#objects = grown;
    }
    this.#objects[this.depth++] = isObject ? 1 : 0;
    this.inObject = isObject;
    return true;
  }

  pop(): void {
    this.depth--;
    this.inObject = this.depth > 0 && this.#objects[this.depth - 1] === 1;
  }
}
