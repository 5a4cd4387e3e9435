/**
 * TypeBox schemas of operators' files. One schema validates a file, supplies the messages, and is
 * published for editors, without its functions. The option `problem` replaces the default message.
 */
import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from 'typebox';
import type { TLocalizedValidationError } from 'typebox/error';
import { isMailAddress } from '../mail-address.ts';
import { follow, keysOf, listErrors, ruled, validatorOf } from '../validation.ts';
import { hiddenCharacters } from '../wording.ts';

const MAX_SCHEMA_ERRORS = 50_000;

export interface TextRule {
  readonly maxChars: number;
  readonly description: string;
  /** Allowed strings, and their description in words. Default: `oneLine`. */
  readonly pattern?: readonly [pattern: string, words: string];
  readonly problem?: (text: string) => string | null;
}

/**
 * Pattern of text on one line. Control characters disturb terminals, and hidden characters make
 * names look alike.
 */
const oneLine = [
  `^[^${hiddenCharacters}\\ud800-\\udfff]*$`,
  'must be one line, without hidden characters',
] as const;

export function text({ maxChars, description, pattern: [pattern, words] = oneLine, problem }: TextRule) {
  const schema = Type.String({ description, minLength: 1, maxLength: maxChars, pattern, words: () => words });
  return problem === undefined ? schema : ruled(schema, problem);
}

/**
 * Returns a function for `TextRule.problem` that limits the size of a string in bytes. It is for
 * strings whose size in bytes other code limits, too.
 */
export const atMostBytes = (max: number) => (value: string) => {
  const bytes = new TextEncoder().encode(value).length;
  return bytes > max ? `has ${bytes} bytes; at most ${max} are allowed` : null;
};

export const flag = (description: string) => Type.Boolean({ description });

export function choice<const T extends string>(words: readonly T[], description: string): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', description, enum: words });
}

export const wholeNumber = (description: string, minimum: number, maximum: number) =>
  Type.Integer({ description, minimum, maximum });

export const listOf = <S extends TSchema>(items: S, description: string, maxItems: number) =>
  Type.Array(items, { description, maxItems });

/**
 * Accepts objects with only these members. Messages use `title` for such an object, for example `a
 * segment`.
 */
export function objectOf<P extends TProperties>(title: string, description: string, members: P): TObject<P> {
  return Type.Object(members, { title, description, additionalProperties: false });
}

export function exactlyOne(
  names: readonly string[],
  sentence: string,
): { readonly oneOf: object[]; readonly problem: Wording } {
  return {
    oneOf: names.map((name) => ({ required: [name] })),
    problem: (_, keyword) => (keyword === 'oneOf' ? sentence : undefined),
  };
}

/** Pattern of names in paths and commands, and its description in words. */
export const itemNameRule = [
  '^[a-z0-9][a-z0-9_-]{0,62}$',
  'must be 1 to 63 of a-z, 0-9, _ and -, the first a letter or digit',
] as const;

export const itemName = (description: string) => text({ maxChars: 63, pattern: itemNameRule, description });

export const mailAddress = text({
  maxChars: 254,
  description: 'One plain address such as ada@example.com.',
  problem: (value) => (isMailAddress(value) ? null : 'must be one plain address such as ada@example.com'),
});

export function withDefault<S extends TSchema>(schema: S, value: Static<S>): S {
  // A spread would omit TypeBox's own properties, which are not enumerable.
  const descriptors = Object.getOwnPropertyDescriptors(schema);
  return Object.defineProperties({}, { ...descriptors, default: { value, enumerable: true } }) as S;
}

/**
 * Accepts any JSON value. The code that reads the value checks it. The schema for editors contains
 * `published` instead.
 */
export const anything = (published: object) => Type.Unknown({ published });

export const rule = (sentence: string) => (value: unknown) => `${sentence}, not ${describe(value)}`;

export type Keys = readonly (string | number)[];

interface SchemaProblem {
  readonly keys: Keys;
  /** Text such as `must be text`, which follows the place in the message. */
  readonly what: string;
  /** The place to which the message points: `parent` if the value is missing. */
  readonly at: 'value' | 'name' | 'parent';
}

export function findProblems(schema: TSchema, value: unknown): SchemaProblem[] {
  const validator = validatorOf(schema);
  if (validator.Check(value)) return [];
  const errors = listErrors(validator, value, MAX_SCHEMA_ERRORS);
  const tooLong = errors.filter(({ keyword }) => keyword === 'maxItems').map((error) => error.instancePath);
  const schemaPaths = new Map<string, string>();
  const otherType = new Set<string>();
  for (const { keyword, instancePath, schemaPath } of errors) {
    const shortest = schemaPaths.get(instancePath);
    if (shortest === undefined || schemaPath.length < shortest.length)
      schemaPaths.set(instancePath, schemaPath);
    if (keyword === 'type') otherType.add(`${schemaPath} ${instancePath}`);
  }
  return errors
    .filter((error, index) => {
      // Omits errors that follow from another error. Such errors are in variants of a union, in
      // items of a list that is too long, and in a value of the wrong type.
      if (schemaPaths.get(error.instancePath) !== error.schemaPath) return false;
      if (error.keyword !== 'type' && otherType.has(`${error.schemaPath} ${error.instancePath}`))
        return false;
      if (tooLong.some((list) => error.instancePath.startsWith(`${list}/`))) return false;
      return error.keyword !== 'if' || errors.length === 1 || !isConsequence(error, errors, index);
    })
    .flatMap((error) => wordError(schema, error, value))
    .filter(isFirstOfValue());
}

/** True if another error, about a member of the object, is more precise. */
function isConsequence(error: TLocalizedValidationError, errors: TLocalizedValidationError[], index: number) {
  return errors.some(({ instancePath }, i) => i !== index && instancePath.startsWith(error.instancePath));
}

function isFirstOfValue(): (problem: SchemaProblem) => boolean {
  const seen = new Set<string>();
  return ({ at, keys, what }) => {
    const place = JSON.stringify(at === 'value' ? keys : [keys, what]);
    return seen.size < seen.add(place).size;
  };
}

type Node = Readonly<Record<string, unknown>>;
/** Message for a failed keyword, or `undefined` for the default. */
export type Wording = (value: unknown, keyword: string) => string | undefined;

function wordError(root: TSchema, error: TLocalizedValidationError, whole: unknown): SchemaProblem[] {
  const schema = follow(root, keysOf(error.schemaPath)) as Node;
  const keys = placeIn(whole, error.instancePath);
  const { title, problem } = schema as { title?: string; problem?: Wording };
  switch (error.keyword) {
    case 'boolean':
    case 'propertyNames':
      return [];
    case 'required':
      return error.params.requiredProperties.map((name) => ({
        keys: [...keys, name],
        what: `is missing; ${title} must have it`,
        at: 'parent',
      }));
    case 'additionalProperties': {
      if (schema['additionalProperties'] !== false) return [];
      const what =
        (schema['unknown'] as Wording | undefined)?.(null, '') ?? `is unknown; ${membersOf(schema)}`;
      return error.params.additionalProperties.map((name) => ({ keys: [...keys, name], what, at: 'name' }));
    }
    case '~refine':
      return [
        { keys, what: error.message, at: error.schemaPath.endsWith('/propertyNames') ? 'name' : 'value' },
      ];
    default: {
      const value = follow(whole, keys);
      const what = problem?.(value, error.keyword) ?? wordValue(schema, error.keyword, value);
      return [{ keys, what, at: 'value' }];
    }
  }
}

function wordValue(schema: Node, keyword: string, value: unknown): string {
  const {
    minimum,
    maximum,
    maxLength,
    maxItems,
    enum: words,
  } = schema as Record<string, number> & { enum?: string[] };
  switch (keyword) {
    case 'minLength':
      return 'is empty';
    case 'maxLength':
      return `has ${Array.from(String(value)).length} characters; at most ${maxLength} are allowed`;
    case 'pattern':
      return `${(schema['words'] as Wording)(value, keyword)}; it is ${quoted(String(value))}`;
    case 'minItems':
      return 'must not be empty';
    case 'maxItems':
      return `has ${(value as unknown[]).length} items; at most ${maxItems} are allowed`;
  }
  if (words !== undefined) return rule(`must be ${words.join(' or ')}`)(value);
  switch (schema['type']) {
    case 'string':
      return `${rule('must be text')(value)}${isPlain(value) ? '; put it in quotes' : ''}`;
    case 'boolean':
      return rule('must be true or false')(value);
    case 'integer':
      return rule(`must be a whole number from ${minimum} to ${maximum}`)(value);
    case 'array':
      return `${rule('must be a list')(value)}${value === null ? '; an empty one is written []' : ''}`;
    case 'object':
      return rule(`must be an object with ${namesOf(schema)}`)(value);
  }
  return `does not fit its schema (${keyword})`;
}

function isPlain(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'boolean';
}

function membersOf(schema: Node): string {
  return `${schema['title']} has ${namesOf(schema)}`;
}

function namesOf(schema: Node): string {
  return Object.keys(schema['properties'] as object).join(', ');
}

function placeIn(value: unknown, pointer: string): Keys {
  let at = value;
  return keysOf(pointer).map((name) => {
    const key = Array.isArray(at) ? Number(name) : name;
    at = follow(at, [key]);
    return key;
  });
}

/** Such as `segments[2].title`. */
export function pathText(root: string, keys: Keys): string {
  return keys.reduce<string>((path, key) => {
    if (typeof key === 'number') return `${path}[${key}]`;
    if (!/^[\w$-]{1,60}$/.test(key)) return `${path}[${JSON.stringify(key.slice(0, 60))}]`;
    return path === '' ? key : `${path}.${key}`;
  }, root);
}

export function describe(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return quoted(value);
  return `the ${typeof value === 'number' ? 'number ' : ''}${value}`;
}

export function quoted(value: string): string {
  const start = Array.from(value.slice(0, 100)).slice(0, 40).join('');
  return JSON.stringify(start.length === value.length ? value : `${start}…`);
}

/** Returns the schema for editors, in which members with a default are optional. */
export function published(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(published);
  if (typeof schema !== 'object' || schema === null) return schema;
  const {
    published: replacement,
    required,
    ...rest
  } = schema as Node & {
    properties?: Record<string, Node>;
  };
  if (replacement !== undefined) return replacement;
  const members = Object.entries(rest).filter(([, value]) => typeof value !== 'function');
  const copy: Record<string, unknown> = Object.fromEntries(
    members.map(([name, value]) => [name, published(value)]),
  );
  if (Array.isArray(required)) {
    const names = required.filter((name) => !('default' in (rest.properties?.[name] ?? {})));
    if (names.length > 0) copy['required'] = names;
  } else if (required !== undefined) {
    // Here, `required` is the name of a member in the file, so the value of `required` is a schema
    // and not a list.
    copy['required'] = published(required);
  }
  return copy;
}
