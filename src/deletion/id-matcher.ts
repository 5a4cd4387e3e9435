import { MAX_ID_BYTES, MAX_REJECT_RAW_BYTES } from '../domain/limits.ts';

/** What stands around a value in CSV and JSON. */
const delimiters = /[,;|\t\r\n"{}[\]:]/;
const delimiterBytes: ReadonlySet<number> = new Set(Buffer.from(',;|\t\r\n"{}[]:'));
const jsonEscape = /\\(?:u([0-9a-f]{4})|(.))/gi;
const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/**
 * Whether the text of a refused record holds one of the ids, as a CSV cell or a JSON value: it may be neither whole nor
 * well-formed, so it is not parsed but taken apart. Errs towards yes: an id that holds a delimiter is looked for anywhere
 * that a value may begin, a number by its value, and of a text that was cut nobody knows what it held.
 *
 * One pass over the text, whatever it and the ids are made of.
 */
export function createIdMatcher(ids: readonly string[]): (raw: Uint8Array) => boolean {
  const plain = new Set(ids.filter((id) => !delimiters.test(id)));
  const composite = new CompositeIds(ids.filter((id) => delimiters.test(id)));
  return (raw) => {
    if (raw.length >= MAX_REJECT_RAW_BYTES) return true;
    const text = Buffer.from(raw).toString('utf8');
    const variants = new Set([text, text.replace(jsonEscape, unescaped), text.replaceAll('""', '"')]);
    for (const variant of variants) {
      if (holdsPlain(plain, variant) || composite.standIn(Buffer.from(variant))) return true;
    }
    return false;
  };
}

function holdsPlain(plain: ReadonlySet<string>, text: string): boolean {
  if (plain.size === 0) return false;
  return text.split(delimiters).some((token) => {
    const trimmed = token.trim();
    return plain.has(token) || plain.has(trimmed) || plain.has(asNumber(trimmed));
  });
}

/**
 * Ids that delimiters would take apart. Sorted, and none the beginning of another (whatever holds the longer one holds
 * the shorter): the only one that can stand at a place is the last that is not greater than what follows there.
 */
class CompositeIds {
  readonly #ids: readonly Buffer[];
  /** 1 for the bytes that an id begins with. */
  readonly #begins = new Uint8Array(256);

  constructor(ids: readonly string[]) {
    const sorted = ids.map((id) => Buffer.from(id)).sort(Buffer.compare);
    const kept: Buffer[] = [];
    for (const id of sorted) {
      const last = kept.at(-1);
      if (last === undefined || !id.subarray(0, last.length).equals(last)) kept.push(id);
    }
    this.#ids = kept;
    for (const id of kept) this.#begins[id[0] ?? 0] = 1;
  }

  standIn(text: Buffer): boolean {
    if (this.#ids.length === 0) return false;
    for (let at = 0; at < text.length; at++) {
      if (this.#begins[text[at] ?? 0] === 1 && mayBegin(text, at) && this.#standsAt(text, at)) return true;
    }
    return false;
  }

  #standsAt(text: Buffer, at: number): boolean {
    const end = Math.min(at + MAX_ID_BYTES, text.length);
    let low = 0;
    let high = this.#ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const id = this.#ids[middle];
      if (id !== undefined && text.compare(id, 0, id.length, at, end) >= 0) low = middle + 1;
      else high = middle;
    }
    const id = this.#ids[low - 1];
    return id !== undefined && text.compare(id, 0, id.length, at, Math.min(at + id.length, end)) === 0;
  }
}

/** Within a word none does: `a:b` does not stand in `data:binary`. White space beyond ASCII ends in a byte of 0x80 or more. */
function mayBegin(text: Buffer, at: number): boolean {
  const before = text[at - 1] ?? 0;
  return before <= 0x20 || before >= 0x80 || delimiterBytes.has(before) || delimiterBytes.has(text[at] ?? 0);
}

/** As bulk data makes an id of a number; a text that is none stays as it is. */
function asNumber(token: string): string {
  return /^-?\d[\d.eE+-]*$/.test(token) ? String(Number(token)) : token;
}

function unescaped(_escape: string, code: string | undefined, plain: string | undefined): string {
  if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
  return escapes[plain ?? ''] ?? plain ?? '';
}
