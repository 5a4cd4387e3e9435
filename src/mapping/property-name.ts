import { MAX_PROPERTY_NAME_CHARS } from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';

const forbidden = new Set(['__proto__', 'constructor', 'prototype']);

/** Why a text cannot be the name of a property, or null. */
export function propertyNameProblem(name: string): Reason | null {
  if (forbidden.has(name)) {
    return { code: 'forbidden_property', message: `${name} cannot be a property name`, column: name };
  }
  if (name.length === 0 || name.length > MAX_PROPERTY_NAME_CHARS) {
    const shown = name.length > 40 ? `${name.slice(0, 40)}…` : name;
    return {
      code: 'invalid_property_name',
      message: `a property name has 1 to ${MAX_PROPERTY_NAME_CHARS} characters, this one ${name.length}`,
      column: shown,
    };
  }
  if (name.includes('\0')) {
    return {
      code: 'nul_character',
      message: 'a property name holds U+0000',
      column: name.replaceAll('\0', '␀'),
    };
  }
  if (!name.isWellFormed()) {
    return {
      code: 'lone_surrogate',
      message: 'a property name holds half a surrogate pair',
      column: name.toWellFormed(),
    };
  }
  return null;
}
