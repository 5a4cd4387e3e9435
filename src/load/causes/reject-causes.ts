/*
 * Causes: refused records counted by why. `reject-causes.ts` gives each its cause when it is refused, `list-causes.ts` lists them
 * with what would mend them (`mends.ts`), `mended-rejects.ts` writes all records of a cause as a mend leaves them. Promise: a mend is
 * tried with the loader's own code, and changes no record that it does not make acceptable.
 */
import { createHash } from 'node:crypto';
import {
  type CauseKey,
  causeColumn,
  causeDigits,
  emptyShape,
  outlineOf,
  type Reject,
  type RejectCause,
  shapeOf,
} from '../../domain/reject.ts';
import { isObject } from '../../mapping/json-object.ts';
import { RefusedCsv } from '../rejects-text.ts';
import { createValueReader, likelyKind, otherName, type RefusedSource, type ValueReader } from './mend.ts';

const maxKnownCauses = 1_000;
/** Bytes at each end of a record that are looked at for its outline. */
const outlineBytes = 64;

/** Gives the refused records of one load their causes. */
export class RejectCauses {
  readonly #csv: RefusedCsv | null;
  readonly #columns: number;
  readonly #valueOf: ValueReader;
  /** Numbers of causes met so far. */
  readonly #known = new Map<string, number>();

  constructor(source: RefusedSource) {
    this.#csv = source.header === null ? null : new RefusedCsv(source.header);
    this.#columns = source.header?.columns.length ?? 0;
    this.#valueOf = createValueReader(source);
  }

  of(reject: Reject): RejectCause {
    const key = { code: reject.code, column: causeColumn(reject), shape: this.#shapeOf(reject) };
    return { cause: this.#numberOf(key), shape: key.shape };
  }

  #numberOf(key: CauseKey): number {
    const text = `${key.code} ${key.shape} ${key.column}`;
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    if (this.#known.size >= maxKnownCauses) this.#known.clear();
    const number = causeNumber(key);
    this.#known.set(text, number);
    return number;
  }

  #shapeOf(reject: Reject): string {
    switch (reject.code) {
      case 'wrong_field_count': {
        const cells = this.#csv?.count(Buffer.from(reject.raw)) ?? 0;
        return cells === 0
          ? ''
          : `${cells} ${cells === 1 ? 'cell' : 'cells'} where ${this.#columns} are named`;
      }
      case 'invalid_json':
      case 'not_an_object':
        return reject.column === null ? outlineOfRecord(reject.raw) : this.#outlineOfValue(reject);
      case 'missing_id':
      case 'missing_event_name':
        return this.#shapeOfMissing(reject);
      case 'unknown_event_type':
      case 'unexpected_event_row': {
        const value = this.#valueOf(reject);
        return typeof value === 'string' && likelyKind(value) !== null ? value.trim() : shapeOfValue(value);
      }
      case 'invalid_date':
      case 'invalid_type':
        return shapeOfValue(this.#valueOf(reject));
      default:
        return '';
    }
  }

  #outlineOfValue(reject: Reject): string {
    const value = this.#valueOf(reject);
    return typeof value === 'string' ? outlineOf(value) : shapeOfValue(value);
  }

  /** Empty, or under which other key it may be. */
  #shapeOfMissing(reject: Reject): string {
    if (this.#csv !== null) return emptyShape;
    const record = readObject(reject.raw);
    if (record === null) return 'missing';
    const other = otherName(record, reject.column);
    return other === null ? 'missing' : outlineName(other.theirs);
  }
}

function outlineOfRecord(raw: Uint8Array): string {
  const bytes = Buffer.from(raw);
  const text =
    bytes.length <= 2 * outlineBytes
      ? bytes.toString('utf8')
      : `${bytes.toString('utf8', 0, outlineBytes)} ${bytes.toString('utf8', bytes.length - outlineBytes)}`;
  return outlineOf(text);
}

function outlineName(name: string): string {
  return `{${name.replace(/[^\w-]/g, ' ').slice(0, 40)}}`;
}

function shapeOfValue(value: unknown): string {
  if (value === undefined) return 'missing';
  if (typeof value === 'string' || typeof value === 'number') return shapeOf(String(value));
  if (Array.isArray(value)) return '[…]';
  return isObject(value) ? '{…}' : String(value);
}

function readObject(raw: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(raw).toString('utf8'));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Stands for the cause, the same in every load. */
function causeNumber({ code, column, shape }: CauseKey): number {
  const text = JSON.stringify([code, column, shape]);
  return Number.parseInt(createHash('sha256').update(text).digest('hex').slice(0, causeDigits), 16);
}
