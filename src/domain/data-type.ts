import { isIsoDate } from './iso-date.ts';

/** What the lookups say a property's values are. `string` also stands for values of several types. */
export const dataTypes = ['string', 'numeric', 'boolean', 'date'] as const;
export type DataType = (typeof dataTypes)[number];

/** The type of a JSON value; null for null and undefined, which are no values. */
export function dataTypeOf(value: unknown): DataType | null {
  switch (typeof value) {
    case 'string':
      return isIsoDate(value) ? 'date' : 'string';
    case 'number':
      return 'numeric';
    case 'boolean':
      return 'boolean';
    default:
      return value === null || value === undefined ? null : 'string';
  }
}

/** The type of a property that has values of both. */
export function widen(one: DataType, other: DataType): DataType {
  return one === other ? one : 'string';
}
