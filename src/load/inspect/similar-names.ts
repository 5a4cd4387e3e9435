/** Shorter names are alike by chance: `age` and `page`. */
const leastChars = 5;
/** Longer names are compared without their blanks and signs only, which bounds what is kept of hostile ones. */
const mostChars = 32;

/** Returns a name without case, blanks and signs. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

/**
 * Known names, to find the one that a column most likely means: it differs in case, blanks and signs, or in one letter that is
 * missing, added, replaced or exchanged with the next. Both names without any one letter are compared, so each look-up costs as many
 * as the name has.
 */
export class SimilarNames {
  readonly #known: ReadonlySet<string>;
  readonly #byKey = new Map<string, string>();

  constructor(known: readonly string[]) {
    this.#known = new Set(known);
    for (const name of known)
      for (const key of keysOf(name)) if (!this.#byKey.has(key)) this.#byKey.set(key, name);
  }

  /** Returns the similar known name; `null` if there is none, or the name itself is known. */
  of(name: string): string | null {
    if (this.#known.has(name)) return null;
    for (const key of keysOf(name)) {
      const found = this.#byKey.get(key);
      if (found !== undefined) return found;
    }
    return null;
  }
}

/** A digit makes another name: `line 1` is not `line 2`. Each key keeps the digits, behind a blank. */
function keysOf(name: string): string[] {
  const plain = plainName(name);
  if (plain === '') return [];
  const digits = ` ${plain.replace(/\P{N}/gu, '')}`;
  const isCut = plain.length >= leastChars && plain.length <= mostChars;
  const cut = isCut ? Array.from(plain, (_, at) => plain.slice(0, at) + plain.slice(at + 1)) : [];
  return [plain, ...cut].map((key) => key + digits);
}
