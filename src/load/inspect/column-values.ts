import { type DataType, dataTypeOf } from '../../domain/data-type.ts';
import { SHOWN_FREQUENT, SHOWN_SAMPLES } from '../../domain/limits.ts';

/** `mixed`: values of several types. */
export type ValueType = DataType | 'array' | 'object' | 'mixed';

/** What the values of one column are like, among the records that would be stored. */
export interface ValuesSummary {
  /** Null where there is no value. */
  readonly type: ValueType | null;
  /** Records that have a value. */
  readonly filled: number;
  /** Values that differ. */
  readonly distinct: number;
  /** The first of them. */
  readonly samples: readonly unknown[];
  /** Those that come most often, the most frequent first. */
  readonly frequent: readonly CountedValue[];
}

export interface CountedValue {
  readonly value: unknown;
  readonly count: number;
}

/** The values of one column, record after record. */
export class ColumnValues {
  readonly #counts = new Map<string, number>();
  readonly #samples: unknown[] = [];
  #type: ValueType | null = null;
  #filled = 0;

  /** Null and undefined are no values. */
  add(value: unknown): void {
    const type = typeOf(value);
    if (type === null) return;
    this.#filled++;
    this.#type = this.#type === null || this.#type === type ? type : 'mixed';
    const text = typeof value === 'string' ? `"${value}` : JSON.stringify(value);
    const count = this.#counts.get(text) ?? 0;
    this.#counts.set(text, count + 1);
    if (count === 0 && this.#samples.length < SHOWN_SAMPLES) this.#samples.push(value);
  }

  summary(): ValuesSummary {
    const frequent = [...this.#counts]
      .sort(([, a], [, b]) => b - a)
      .slice(0, SHOWN_FREQUENT)
      .map(([text, count]) => ({ value: readKey(text), count }));
    const distinct = this.#counts.size;
    return { type: this.#type, filled: this.#filled, distinct, samples: this.#samples, frequent };
  }
}

/** Reads a kept value: a text is kept behind a quote, any other value as JSON. */
function readKey(text: string): unknown {
  return text.startsWith('"') ? text.slice(1) : JSON.parse(text);
}

function typeOf(value: unknown): ValueType | null {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'object' && value !== null ? 'object' : dataTypeOf(value);
}
