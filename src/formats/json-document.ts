import { type InputError, inputError } from '../base/errors.ts';
import { MAX_RECORDS_PATH, MAX_SHOWN_COLUMNS } from '../base/limits.ts';
import { named, say } from '../base/sentence.ts';
import { type RecordsPath, recordsPathText } from '../domain/source.ts';
import { MAX_RECORD_PROPERTIES } from './json-text.ts';
import { decodeKey, type JsonListener, JsonWalker } from './json-walker.ts';
import { checkedUtf8, wholeCharacters } from './utf8.ts';

/** Keys under which records are found if no path is given. */
const knownKeys: ReadonlySet<string> = new Set([
  'users',
  'companies',
  'events',
  'batch',
  'data',
  'records',
  'items',
  'results',
  'rows',
]);

const [OPEN_ARRAY, OPEN_OBJECT] = [91, 123];

const MAX_SHOWN_PATH_CHARS = 300;

interface DocumentOptions {
  /**
   * Path of the array. `null` if the document itself is the array, or if the array is searched for
   * under `knownKeys`.
   */
  readonly path: RecordsPath | null;
  /** True if an object with this key may be a record. */
  readonly isOfRecord: (key: string) => boolean;
  /**
   * Name of the request body in messages. If set, the body itself may be the array, even if a path
   * is given.
   */
  readonly body?: string;
}

/**
 * Yields the elements of one array in a JSON document as NDJSON, without white space between
 * tokens. UTF-8 is not checked. With a path, several documents may follow one another. Memory use
 * does not depend on the size of the document or of its elements. `notes` receives sentences for
 * the job record.
 * @throws InputError `empty_file`; `invalid_json` with the position; `missing_field` or
 * `invalid_field` if the array is missing or ambiguous.
 */
export async function* documentToNdjson(
  source: AsyncIterable<Buffer>,
  options: DocumentOptions,
  notes: string[],
): AsyncGenerator<Buffer> {
  const records = new DocumentRecords(options);
  for await (const bytes of wholeCharacters(source)) {
    const lines = records.take(bytes);
    if (lines.length > 0) yield lines;
  }
  records.finish();
  notes.push(...records.notes());
}

export type ArrayEnvelope = 'users' | 'companies' | 'batch' | 'events';

/**
 * Yields the elements of `[…]` or of the array under `envelope`. The elements may have any JSON
 * type.
 * @throws InputError as `documentToNdjson` does, and for bytes that are not UTF-8.
 */
export function arrayToNdjson(
  source: AsyncIterable<Buffer>,
  envelope: ArrayEnvelope,
): AsyncGenerator<Buffer> {
  const body = `{"${envelope}":[…]}, […], or NDJSON as application/x-ndjson`;
  return documentToNdjson(checkedUtf8(source), { path: [envelope], isOfRecord: () => false, body }, []);
}

/** An array that contains the records if its first element seems to be a record. */
interface OtherArray {
  readonly depth: number;
  isEmpty: boolean;
}

export class DocumentRecords implements JsonListener {
  /** Keys of the document's object, at most MAX_RECORD_PROPERTIES. */
  readonly keys: string[] = [];
  /** True if the document itself has a key of a record. */
  isRecord = false;
  /** True if the first element of the array has a key of a record. */
  hasRecords = false;
  /** Paths of some arrays that begin with an object, for messages. */
  readonly arrays: string[] = [];
  readonly #isOfRecord: (key: string) => boolean;
  readonly #walker: JsonWalker;
  readonly #hasPath: boolean;
  readonly #body: string | undefined;
  #hasBegun = false;
  #path: RecordsPath | null;
  /** Keys and positions of the enclosing containers. */
  readonly #names: string[] = [];
  /** For each depth, the index of the current element, or -1 in an object. */
  readonly #positions: number[] = [];
  /** Depth of the elements that are yielded. 0 outside the array of records. */
  #elements = 0;
  #isFirst = false;
  #other: OtherArray | null = null;
  /** An empty array under a known key sets `#hasEmpty`. */
  #wasRead = false;
  #hasEmpty = false;

  constructor({ path, isOfRecord, body }: DocumentOptions) {
    this.#path = path;
    this.#hasPath = path !== null;
    this.#isOfRecord = isOfRecord;
    this.#body = body;
    this.#walker = new JsonWalker(this, { sequence: !this.#mayBeArray });
    this.#walker.watchedDepth = 1;
  }

  take(bytes: Buffer): Buffer {
    return this.#walker.walk(bytes);
  }

  get isFound(): boolean {
    return this.#wasRead || (!this.#hasPath && this.#hasEmpty);
  }

  /** True if the only document may itself be the array. */
  get #mayBeArray(): boolean {
    return !this.#hasPath || this.#body !== undefined;
  }

  finish(): void {
    if (!this.#hasBegun)
      throw inputError('empty_file', `The ${this.#body === undefined ? 'file' : 'body'} is empty`);
    this.#walker.finish();
    if (this.#hasPath) return;
    if (!this.isFound) throw this.#notFound();
    if (this.isRecord) throw this.#ambiguous();
  }

  notes(): string[] {
    const path = recordsPathText(this.#path ?? []);
    if (path === '') return [];
    const others = this.#hasPath ? [] : this.arrays.filter((array) => array !== path);
    const passedOver = `Other arrays of objects were passed over: ${others.join(', ')}.`;
    return [`Records are under ${path}.`, ...(others.length > 0 ? [passedOver] : [])];
  }

  valueStarts(first: number, depth: number): void {
    this.#hasBegun = true;
    if (this.#elements > 0) {
      if (depth === this.#elements) this.#walker.copy.start();
      return;
    }
    if (this.#other?.depth === depth - 1) {
      this.#startOther(this.#other, first, depth);
      return;
    }
    if (depth > 0 && (this.#positions[depth - 1] ?? -1) >= 0) this.#nextPosition(depth - 1);
    const path = this.#pathAt(depth);
    if (first === OPEN_ARRAY) this.#startArray(path, depth);
    else if (path === 'here') throw this.#noArray();
    else if (first === OPEN_OBJECT) this.#enter(depth, -1);
  }

  valueEnds(depth: number): void {
    const { copy } = this.#walker;
    if (depth === this.#elements && depth > 0) {
      copy.end();
      this.#isFirst = false;
      this.#walker.watchedDepth = depth + 1;
      return;
    }
    if (this.#elements > 0 && depth >= this.#elements) return;
    if (this.#elements > 0) {
      this.#elements = 0;
      this.#wasRead = true;
    }
    if (this.#other?.depth === depth) this.#endOther(this.#other);
    this.#walker.watchedDepth = depth + 1;
    if (depth === 0 && this.#hasPath) this.#endDocument();
  }

  key(raw: string, depth: number): void {
    if (this.#elements > 0) {
      if (this.#isFirst && depth === this.#elements + 1) this.hasRecords ||= this.#isOfRecord(decodeKey(raw));
      return;
    }
    const key = decodeKey(raw);
    this.#names[depth - 1] = key;
    if (depth > 1) return;
    if (this.keys.length < MAX_RECORD_PROPERTIES) this.keys.push(key);
    this.isRecord ||= this.#isOfRecord(key);
  }

  #pathAt(depth: number): 'here' | 'on the way' | 'beside' {
    if (this.#path === null || depth > this.#path.length) return 'beside';
    for (let at = 0; at < depth; at++) if (this.#names[at] !== this.#path[at]) return 'beside';
    return depth === this.#path.length ? 'here' : 'on the way';
  }

  #startArray(path: 'here' | 'on the way' | 'beside', depth: number): void {
    if (depth === 0 && this.#mayBeArray) this.#path = [];
    if (path === 'here' || this.#path?.length === 0) this.#open(depth + 1);
    else if (path === 'on the way') this.#enter(depth, 0);
    else {
      this.#other = { depth, isEmpty: true };
      this.#walker.watchedDepth = depth + 2;
    }
  }

  /**
   * Enters a container. The walker then reports its keys and elements, unless they are deeper than
   * any path.
   */
  #enter(depth: number, position: number): void {
    this.#positions[depth] = position;
    this.#names[depth] = '';
    this.#walker.watchedDepth = depth < MAX_RECORDS_PATH ? depth + 2 : depth + 1;
  }

  #nextPosition(depth: number): void {
    const position = this.#positions[depth] ?? 0;
    this.#names[depth] = String(position);
    this.#positions[depth] = position + 1;
  }

  #open(elements: number): void {
    if (this.#wasRead) throw this.#repeatedArray();
    this.#elements = elements;
    this.#walker.watchedDepth = elements + 1;
  }

  #startOther(other: OtherArray, first: number, depth: number): void {
    other.isEmpty = false;
    this.#walker.watchedDepth = depth;
    if (first !== OPEN_OBJECT) return;
    const path = this.#names.slice(0, other.depth);
    if (this.arrays.length < MAX_SHOWN_COLUMNS) {
      const shown = recordsPathText(path);
      if (shown.length <= MAX_SHOWN_PATH_CHARS) this.arrays.push(shown);
    }
    const [text = ''] = path;
    if (this.#hasPath || path.length !== 1 || !knownKeys.has(text)) return;
    if (this.#path !== null) throw this.#several(text);
    this.#path = path;
    this.#other = null;
    this.#isFirst = true;
    this.#elements = depth;
    this.#walker.watchedDepth = depth + 2;
    this.#walker.copy.start();
  }

  #endOther({ depth, isEmpty }: OtherArray): void {
    this.#other = null;
    if (isEmpty && depth === 1 && knownKeys.has(this.#names[0] ?? '')) this.#hasEmpty = true;
  }

  #endDocument(): void {
    if (!this.#wasRead) throw this.#notFound();
    this.#wasRead = false;
  }

  #pathName(): string {
    return JSON.stringify(recordsPathText(this.#path ?? []));
  }

  get #noun(): string {
    return this.#body === undefined ? 'document' : 'body';
  }

  #repeatedArray(): InputError {
    const message = `The ${this.#noun} has more than one array ${this.#pathName()}`;
    return inputError('invalid_field', message, this.#body === undefined ? 'records' : this.#pathName());
  }

  #noArray(): InputError {
    return inputError('invalid_field', `${this.#pathName()} is no array in this ${this.#noun}`, this.#seen());
  }

  #several(other: string): InputError {
    const path = recordsPathText(this.#path ?? []);
    if (path === other) return this.#repeatedArray();
    const message = say`The document holds several arrays of objects; say which has the records: ${named('records', path)} or ${named('records', other)}`;
    return inputError('invalid_field', message, 'records');
  }

  #ambiguous(): InputError {
    const path = recordsPathText(this.#path ?? []);
    const option = path === '' ? '' : say`${named('records', path)} for the array, or `;
    const message = say`The document may be a record itself, or hold an array of them; say ${option}format=ndjson for one record`;
    return inputError('invalid_field', message, 'records');
  }

  #notFound(): InputError {
    const description = this.#hasPath ? ` ${this.#pathName()}` : ' of records under a key that is known';
    const [first] = this.arrays;
    const where =
      first === undefined ? '' : say`; say where the records are, such as ${named('records', first)}`;
    const advice = this.#body === undefined ? where : `; send ${this.#body}`;
    return inputError(
      'missing_field',
      say`The ${this.#noun} has no array${description}${advice}`,
      this.#seen(),
    );
  }

  #seen(): string {
    if (this.arrays.length > 0) return `arrays of objects seen: ${this.arrays.join(', ')}`;
    const keys = this.keys.slice(0, MAX_SHOWN_COLUMNS).join(', ');
    return keys === '' ? 'no array of objects was seen' : `no array of objects was seen; keys seen: ${keys}`;
  }
}
