import { inputError } from '../domain/errors.ts';
import { decodeKey, type JsonListener, JsonWalker } from './json-walker.ts';
import { checkedUtf8 } from './utf8.ts';

/** The key that holds the records of a body. */
export type ArrayEnvelope = 'users' | 'companies' | 'batch';

const OPEN_ARRAY = 91;
const OPEN_OBJECT = 123;

/**
 * The elements of `[…]` or `{"users":[…]}`, where `envelope` is that key, as NDJSON: one line each, as written but for the white
 * space between its tokens. What kind of value an element is does not matter here, nor its length, nor what else the
 * object has.
 * @throws InputError `empty_file`; `invalid_json` with the position; `missing_field` and `invalid_field` for the envelope.
 */
export async function* arrayToNdjson(
  source: AsyncIterable<Buffer>,
  envelope: ArrayEnvelope,
): AsyncGenerator<Buffer> {
  const elements = new ArrayElements(envelope);
  for await (const bytes of checkedUtf8(source)) {
    const lines = elements.take(bytes);
    if (lines.length > 0) yield lines;
  }
  elements.finish();
}

class ArrayElements implements JsonListener {
  readonly #name: ArrayEnvelope;
  readonly #walker = new JsonWalker(this);
  #begun = false;
  /** The array: not come yet, announced by its key, being read, or over. */
  #array: 'awaited' | 'named' | 'open' | 'over' = 'awaited';
  /** Containers around an element. */
  #depth = 0;

  constructor(name: ArrayEnvelope) {
    this.#name = name;
  }

  take(bytes: Buffer): Buffer {
    return this.#walker.walk(bytes);
  }

  finish(): void {
    if (!this.#begun) throw inputError('empty_file', 'The body is empty');
    this.#walker.finish();
    if (this.#array !== 'over') {
      throw inputError('missing_field', `The body has no array "${this.#name}"`, this.#name);
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

  key(raw: string, depth: number): void {
    if (depth > 1) return;
    if (decodeKey(raw) !== this.#name) return;
    if (this.#array !== 'awaited') {
      throw inputError('invalid_field', `The body has more than one array "${this.#name}"`, this.#name);
    }
    this.#array = 'named';
  }

  #startBody(first: number): void {
    this.#begun = true;
    if (first === OPEN_OBJECT) return;
    if (first !== OPEN_ARRAY) {
      throw inputError(
        'invalid_field',
        `The body must be an array, or an object with the array "${this.#name}"`,
      );
    }
    this.#depth = 1;
    this.#walker.watchedDepth = 2;
    this.#array = 'open';
  }

  #startArray(first: number): void {
    if (first !== OPEN_ARRAY) throw inputError('invalid_field', 'It must be an array', `"${this.#name}"`);
    this.#depth = 2;
    this.#array = 'open';
  }
}
