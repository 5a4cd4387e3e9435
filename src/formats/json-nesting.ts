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

/** Up to this many characters a parser makes nothing of nesting: looking for it would cost more than it saves. */
const harmlessChars = 1024;
const [QUOTE, BACKSLASH] = [34, 92];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125];

/**
 * Whether JSON text of more than `harmlessChars` has more containers inside one another than `maxDepth`; to be asked before
 * it is parsed, as that costs some 150 ms for a MiB of brackets. Of text that is no JSON the answer is of no use, but bounds
 * the parser all the same.
 */
export function isNestedDeeper(text: string, maxDepth: number): boolean {
  return text.length > harmlessChars && hasMoreContainers(text, maxDepth) && depthExceeds(text, maxDepth);
}

/** What nearly all records fail: a search for a character is many times as fast as a look at each. */
function hasMoreContainers(text: string, count: number): boolean {
  let found = 0;
  for (const open of '{[') {
    for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at + 1))
      if (++found > count) return true;
  }
  return false;
}

function depthExceeds(text: string, maxDepth: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at++;
      while (at < text.length && text.charCodeAt(at) !== QUOTE)
        at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
    } else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      if (++depth > maxDepth) return true;
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth--;
  }
  return false;
}
