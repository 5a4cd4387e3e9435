import { type DataType, dataTypeOf } from '../../domain/data-type.ts';

/** Values of a column that are shown. */
export const SHOWN_SAMPLES = 3;

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
}

/** The values of one column, record after record. */
export class ColumnValues {
  readonly #seen = new Set<string>();
  readonly #samples: unknown[] = [];
  #type: ValueType | null = null;
  #filled = 0;

  /** Null and undefined are no values. */
  add(value: unknown): void {
    const type = typeOf(value);
    if (type === null) return;
    this.#filled++;
    this.#type = this.#type === null || this.#type === type ? type : 'mixed';
    const text = JSON.stringify(value);
    if (this.#seen.has(text)) return;
    this.#seen.add(text);
    if (this.#samples.length < SHOWN_SAMPLES) this.#samples.push(value);
  }

  summary(): ValuesSummary {
    return { type: this.#type, filled: this.#filled, distinct: this.#seen.size, samples: this.#samples };
  }
}

function typeOf(value: unknown): ValueType | null {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'object' && value !== null ? 'object' : dataTypeOf(value);
}
