import { InputError } from '../base/errors.ts';
import type { RecordsPath } from '../domain/source.ts';
import { DocumentRecords } from './json-document.ts';
import { type LineLayout, plainLines } from './json-lines.ts';
import { type JsonListener, JsonWalker } from './json-walker.ts';

const MAX_SNIFFED_LINES = 100;

export type JsonLayout =
  | { readonly kind: 'lines'; readonly lines: LineLayout }
  /** A sequence of values, each of which may span several lines. */
  | { readonly kind: 'sequence' }
  /**
   * A document that contains an array of records. If `path` is `null`, the array must be searched
   * for.
   */
  | { readonly kind: 'document'; readonly path: RecordsPath | null };

export interface SniffedJson {
  readonly layout: JsonLayout;
  /**
   * If a single object is read as one record, the keys of this object and the paths of its arrays.
   * Otherwise, `null`.
   */
  readonly object: { readonly keys: readonly string[]; readonly arrays: readonly string[] } | null;
}

interface JsonHints {
  /** Format that the caller's file name, media type or option suggests. */
  readonly hinted: 'ndjson' | 'json' | null;
  readonly isOfRecord: (key: string) => boolean;
}

const [LF, CR, SPACE, TAB, RS, COMMA, OPEN_OBJECT] = [10, 13, 32, 9, 0x1e, 44, 123];

/**
 * Detects the layout of the first bytes in UTF-8. It is NDJSON if the first line is a complete
 * object and more text follows. Damaged text is NDJSON if at least half of its lines are complete
 * objects.
 */
export function sniffJson(head: Buffer, isWhole: boolean, hints: JsonHints): SniffedJson {
  const text = new Head(head, isWhole);
  if (head[text.start] === RS) return lines({ ends: 'rs', commas: false });
  const ends = text.ends;
  const firstLine = text.line(text.start);
  let commas: boolean | null = null;
  if (isObject(firstLine)) commas = false;
  else if (isObject(withoutComma(firstLine))) commas = true;
  if (commas !== null && (commas || !text.isBlankFrom(text.start + firstLine.length) || !isWhole)) {
    return lines({ ends, commas });
  }
  const first = readFirst(head.subarray(text.start));
  if (first.state === 'whole') {
    const end = text.start + first.length;
    const next = text.nextToken(end);
    if (next === -1 && isWhole) return single(head.subarray(text.start, end), hints);
    if (next === -1 && hasArrays(text, hints.isOfRecord)) return document;
    const byte = head[next];
    if (byte === RS) return lines({ ends: 'rs', commas: false });
    if (next === -1 || byte === COMMA || byte === OPEN_OBJECT) return sequence;
  }
  return text.mostLines(first) ?? unclear(first, text, hints);
}

const sequence: SniffedJson = { layout: { kind: 'sequence' }, object: null };

export function documentAt(path: RecordsPath | null): SniffedJson {
  return { layout: { kind: 'document', path }, object: null };
}

const document = documentAt(null);

function lines(layout: LineLayout): SniffedJson {
  return { layout: { kind: 'lines', lines: layout }, object: null };
}

function single(bytes: Buffer, { hinted, isOfRecord }: JsonHints): SniffedJson {
  const isSpread = bytes.includes(LF) || bytes.includes(CR);
  const asRecord: SniffedJson = isSpread ? sequence : lines(plainLines);
  if (hinted === 'ndjson') return asRecord;
  const records = lookInto(bytes, isOfRecord);
  const isRecord = records?.isRecord === true && !records.hasRecords;
  if (records === null || (records.isFound && !isRecord)) return document;
  return { ...asRecord, object: { keys: records.keys, arrays: records.arrays } };
}

/**
 * Searches the beginning of a document for records. Returns `null` for invalid JSON, whose error is
 * reported when the document is read.
 */
function lookInto(bytes: Buffer, isOfRecord: JsonHints['isOfRecord']): DocumentRecords | null {
  const records = new DocumentRecords({ path: null, isOfRecord });
  try {
    records.take(bytes);
    return records;
  } catch (error) {
    if (error instanceof InputError) return null;
    throw error;
  }
}

/** Guesses the layout if the first object is damaged or longer than `head`. */
function unclear(first: FirstObject, text: Head, { hinted, isOfRecord }: JsonHints): SniffedJson {
  if (hinted === 'ndjson') return lines(plainLines);
  if (first.state === 'open' && !text.isWhole) {
    const isSpread = text.hasBreakBefore(text.start + first.length);
    return isSpread || hinted === 'json' || hasArrays(text, isOfRecord) ? document : lines(plainLines);
  }
  // Lines of a damaged record must not be read as separate records.
  return text.hasBreakBefore(text.bytes.length) || hinted === 'json' ? sequence : lines(plainLines);
}

/**
 * True if the object seems to be a document. An array of objects must begin in `head`. If the
 * object has a key of a record, the first element must have one too.
 */
function hasArrays(text: Head, isOfRecord: JsonHints['isOfRecord']): boolean {
  const records = lookInto(text.bytes.subarray(text.start), isOfRecord);
  return records === null || (records.arrays.length > 0 && (!records.isRecord || records.hasRecords));
}

/**
 * If the first object, or the part before its error, has more line ends than this, records span
 * several lines.
 */
const MAX_LINES_OF_DAMAGE = 2;

class Head {
  readonly bytes: Buffer;
  readonly isWhole: boolean;
  readonly start: number;
  readonly ends: 'lf' | 'cr';
  readonly #lineEnd: number;

  constructor(bytes: Buffer, isWhole: boolean) {
    this.bytes = bytes;
    this.isWhole = isWhole;
    const mark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
    this.start = Math.max(0, this.nextToken(mark));
    const isCr = !bytes.includes(LF) && bytes.includes(CR);
    this.ends = isCr ? 'cr' : 'lf';
    this.#lineEnd = isCr ? CR : LF;
  }

  nextToken(from: number): number {
    for (let at = from; at < this.bytes.length; at++) if (!isBlank(this.bytes[at])) return at;
    return -1;
  }

  isBlankFrom(from: number): boolean {
    return this.nextToken(from) === -1;
  }

  hasBreakBefore(end: number): boolean {
    return this.#breaksBefore(end) > 0;
  }

  #breaksBefore(end: number): number {
    let breaks = 0;
    for (let at = this.start; breaks <= MAX_LINES_OF_DAMAGE; breaks++) {
      const next = this.bytes.indexOf(this.#lineEnd, at);
      if (next === -1 || next >= end) return breaks;
      at = next + 1;
    }
    return breaks;
  }

  line(start: number): Buffer {
    const end = this.bytes.indexOf(this.#lineEnd, start);
    return this.bytes.subarray(start, end === -1 ? this.bytes.length : end);
  }

  /**
   * Returns lines if at least half of them are complete objects outside other objects, otherwise
   * `null`.
   */
  mostLines(first: FirstObject): SniffedJson | null {
    if (first.state === 'open' || this.#breaksBefore(this.start + first.length) > MAX_LINES_OF_DAMAGE)
      return null;
    let whole = 0;
    let withComma = 0;
    let seen = 0;
    let start = this.start;
    while (start < this.bytes.length && seen < MAX_SNIFFED_LINES) {
      const line = this.line(start);
      start += line.length + 1;
      // The last line may be incomplete.
      if (line.every((byte) => isBlank(byte)) || (start > this.bytes.length && !this.isWhole && seen > 0))
        continue;
      seen++;
      if (isObject(line)) whole++;
      else if (isObject(withoutComma(line))) withComma++;
    }
    if (2 * (whole + withComma) < seen) return null;
    // In a list, all lines except the last end with a comma.
    return lines({ ends: this.ends, commas: withComma > 0 && whole <= 1 });
  }
}

function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB || byte === CR || byte === LF;
}

function withoutComma(line: Buffer): Buffer {
  let end = line.length;
  while (end > 0 && isBlank(line[end - 1])) end--;
  return line[end - 1] === COMMA ? line.subarray(0, end - 1) : line;
}

function isObject(text: Buffer): boolean {
  const first = readFirst(text);
  return first.state === 'whole' && text.subarray(first.length).every((byte) => isBlank(byte));
}

/**
 * The first object in a text. It may be complete, invalid, or cut off by the text's end. `length`
 * is the number of bytes read.
 */
interface FirstObject {
  readonly state: 'whole' | 'broken' | 'open';
  readonly length: number;
}

const ended = new Error('the first object is over');

class FirstEnd implements JsonListener {
  readonly walker = new JsonWalker(this);
  valueStarts(): void {}
  key(): void {}
  valueEnds(): void {
    throw ended;
  }
}

function readFirst(text: Buffer): FirstObject {
  let start = 0;
  while (start < text.length && isBlank(text[start])) start++;
  if (text[start] !== OPEN_OBJECT) return { state: 'broken', length: start };
  const { walker } = new FirstEnd();
  walker.watchedDepth = 1;
  try {
    walker.walk(text);
    return { state: 'open', length: text.length };
  } catch (error) {
    if (error === ended) return { state: 'whole', length: walker.copy.at };
    if (!(error instanceof InputError)) throw error;
    return { state: 'broken', length: walker.position.brokenAt };
  }
}
