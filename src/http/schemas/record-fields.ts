import { Type } from 'typebox';
import { MAX_ID_BYTES } from '../../domain/limits.ts';

/** An id in a single record: a string, and never a number. */
export const idText = (description: string) =>
  Type.String({ minLength: 1, maxLength: MAX_ID_BYTES, description });

/** Properties of a user in a single record. */
export const textValue = { type: ['string', 'null'], description: 'null removes the property.' };

export const primitiveValue = {
  type: ['string', 'number', 'boolean', 'null'],
  description: 'null removes the property.',
};

/** Any JSON value. */
export const anyValue = { description: 'Any JSON value; null removes the property.' };
