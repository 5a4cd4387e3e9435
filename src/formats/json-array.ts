import { inputError } from '../domain/errors.ts';
import { type JsonListener, JsonWalker } from './json-walker.ts';
import { checkedUtf8 } from './utf8.ts';

/** The key that holds the records of a body. */
export type ArrayEnvelope = 'users' | 'companies' | 'batch';

const OPEN_ARRAY = 91;
const OPEN_OBJECT = 123;
const BOM_BYTES = 3;

/**
 * The elements of `[…]`, `{"users":[…]}` or `{"companies":[…]}` as NDJSON: one line each, as written but for the white
 * space between its tokens. What kind of value an element is does not matter here, nor its length, nor what else the
 * object has. With `envelope` only that key will do; `batch` is looked for only so.
 * @throws InputError `empty_file`; `invalid_json` with the position; `missing_field` and `invalid_field` for the envelope.
 */
export async function* arrayToNdjson(
  source: AsyncIterable<Buffer>,
  envelope?: ArrayEnvelope,
): AsyncGenerator<Buffer> {
  const elements = new ArrayElements(envelope === undefined ? ['users', 'companies'] : [envelope]);
  for await (const bytes of checkedUtf8(source)) {
    const lines = elements.take(bytes);
    if (lines.length > 0) yield lines;
  }
  elements.finish();
}

class ArrayElements implements JsonListener {
  readonly #names: readonly string[];
  readonly #walker = new JsonWalker(this);
  #atStart = true;
  #begun = false;
  /** The array: not come yet, announced by its key, being read, or over. */
  #array: 'awaited' | 'named' | 'open' | 'over' = 'awaited';
  /** Containers around an element. */
  #depth = 0;

  constructor(names: readonly string[]) {
    this.#names = names;
  }

  take(bytes: Buffer): Buffer {
    const bomBytes = this.#atStart && startsWithBom(bytes) ? BOM_BYTES : 0;
    if (bomBytes > 0) this.#walker.skip(bomBytes);
    this.#atStart = false;
    return this.#walker.walk(bytes.subarray(bomBytes));
  }

  finish(): void {
    if (!this.#begun) throw inputError('empty_file', 'The body is empty');
    this.#walker.finish();
    if (this.#array !== 'over') {
      throw inputError('missing_field', `The body has no array ${this.#oneOf()}`, this.#names.join(', '));
    }
  }

  valueStarts(first: number, depth: number): void {
    if (depth === 0) this.#startBody(first);
    else if (this.#array === 'open' && depth === this.#depth) this.#walker.copy.start();
    else if (this.#array === 'named') this.#startArray(first);
  }

  valueEnds(depth: number): void {
    const { copy } = this.#walker;
    if (copy.copying && depth === this.#depth) copy.end();
    else if (this.#array === 'open' && depth < this.#depth) this.#array = 'over';
  }

  key(raw: string): void {
    const name = decodeKey(raw);
    if (!this.#names.includes(name)) return;
    if (this.#array !== 'awaited') {
      throw inputError('invalid_field', `The body has more than one array ${this.#oneOf()}`, name);
    }
    this.#array = 'named';
  }

  #startBody(first: number): void {
    this.#begun = true;
    if (first === OPEN_OBJECT) return;
    if (first !== OPEN_ARRAY) {
      throw inputError(
        'invalid_field',
        `The body must be an array, or an object with the array ${this.#oneOf()}`,
      );
    }
    this.#depth = 1;
    this.#array = 'open';
  }

  #startArray(first: number): void {
    if (first !== OPEN_ARRAY) throw inputError('invalid_field', 'It must be an array', this.#oneOf());
    this.#depth = 2;
    this.#array = 'open';
  }

  #oneOf(): string {
    return this.#names.map((name) => `"${name}"`).join(' or ');
  }
}

/** A byte order mark is one character: it comes whole. */
function startsWithBom(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

/** Keys may be written with escapes; one that was cut cannot be read and is none of ours. */
function decodeKey(raw: string): string {
  try {
    return String(JSON.parse(`"${raw}"`));
  } catch {
    return '';
  }
}
