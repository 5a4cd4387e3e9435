// Validates requests against the TypeBox schemas that document them and contain the wording of
// refusals (`worded`). TypeBox's compiler replaces Fastify's ajv: it compiles a body's schema in 3
// ms, not 34, and checks a value in 0.1 µs, not 0.2.

import { type Static, type TSchema, Type } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import type { TLocalizedValidationError as SchemaError } from 'typebox/error';
import { Settings } from 'typebox/system';
import { type ErrorCode, InputError, type Problem } from './errors.ts';
import { MAX_ID_BYTES, MAX_REQUEST_PROBLEMS } from './limits.ts';

export interface Wording {
  readonly message: string;
  readonly code?: ErrorCode;
  /**
   * The part of the request that is refused. Default: the path of the value, such as
   * `users[3].user_id`.
   */
  readonly details?: string;
}

export interface Refusal {
  /**
   * The wording of a refusal, which may depend on the violated keyword. Default: the wording of the
   * enclosing schema.
   */
  readonly wording?: Wording | ((value: unknown, keyword: string) => Wording);
  /** Reports all errors inside the value as one, with `wording`. */
  readonly isOneProblem?: true;
}

const refusalKey = Symbol('refusal');

/**
 * Adds the wording of a refusal to the schema. This changes the schema itself, so copy a schema
 * that several fields share.
 */
export function worded<T extends TSchema>(schema: T, refusal: Refusal | string): T {
  const value = typeof refusal === 'string' ? { wording: { message: refusal } } : refusal;
  return Object.defineProperty(schema, refusalKey, { value, enumerable: true });
}

export function optional<T extends TSchema>(schema: T, refusal: Refusal | string) {
  return Type.Optional(worded(schema, refusal));
}

export function hasWording(schema: TSchema): boolean {
  return refusalOf(schema)?.wording !== undefined;
}

/** Adds a rule that the schema cannot express. `problem` returns a sentence or `null`. */
export function ruled<T extends TSchema>(schema: T, problem: (value: Static<T>) => string | null) {
  return Type.Refine(
    schema,
    (value) => problem(value as Static<T>) === null,
    (value) => problem(value as Static<T>) ?? '',
  );
}

const validators = new WeakMap<TSchema, Validator>();

export function validatorOf(schema: TSchema): Validator {
  const validator = validators.get(schema) ?? (Compile(schema) as unknown as Validator);
  validators.set(schema, validator);
  return validator;
}

export function compileSchema(schema: TSchema): (value: unknown) => Problem[] {
  return (value) => {
    const validator = validatorOf(schema);
    return validator.Check(value) ? [] : readErrors(schema, findErrors(validator, value), value);
  };
}

/**
 * Maximum number of errors per request. One item may have several errors, and it takes seconds to
 * collect the errors of ten thousand items.
 */
const maxErrors = 10 * MAX_REQUEST_PROBLEMS;

function findErrors(compiled: Validator, value: unknown): readonly SchemaError[] {
  const errors = listErrors(compiled, value, maxErrors);
  if (errors.length < maxErrors) return errors;
  // The limit may have cut off errors of the last union, so all errors of this union are dropped.
  const inUnion = errors.at(-1)?.schemaPath.includes('/anyOf/') === true;
  return inUnion ? errors.slice(0, errors.findLastIndex(({ keyword }) => keyword === 'anyOf') + 1) : errors;
}

export function listErrors(validator: Validator, value: unknown, max: number): SchemaError[] {
  // TypeBox has one limit for the whole process, so the limit is restored afterwards.
  const { maxErrors: before } = Settings.Get();
  Settings.Set({ maxErrors: max });
  try {
    return validator.Errors(value);
  } finally {
    Settings.Set({ maxErrors: before });
  }
}

export function throwProblems([first, ...more]: readonly Problem[]): void {
  if (first !== undefined) throw new InputError(first, ...more.slice(0, MAX_REQUEST_PROBLEMS - 1));
}

function readErrors(root: TSchema, errors: readonly SchemaError[], value: unknown): Problem[] {
  const { isOneProblem, wording } = refusalOf(root) ?? {};
  if (isOneProblem) return [toProblem(wording, value, '', [])];
  const tooLong = errors.filter(({ keyword }) => keyword === 'maxItems').map((error) => error.instancePath);
  const seen = new Set<string>();
  return chooseVariants(inOrder(errors))
    .filter(({ instancePath }) => !tooLong.some((list) => instancePath.startsWith(`${list}/`)))
    .flatMap((error) => readError(root, error, value))
    .filter(({ place }) => seen.size < seen.add(place).size)
    .slice(0, MAX_REQUEST_PROBLEMS)
    .map(({ problem }) => problem);
}

/** Puts unexpected members of an object before missing members. */
function inOrder(errors: readonly SchemaError[]): SchemaError[] {
  const ordered: SchemaError[] = [];
  let missing: SchemaError | null = null;
  for (const error of errors) {
    if (missing !== null && error.schemaPath !== `${missing.schemaPath}/additionalProperties`) {
      ordered.push(missing);
      missing = null;
    }
    if (error.keyword === 'required') missing = error;
    else ordered.push(error);
  }
  return missing === null ? ordered : [...ordered, missing];
}

/**
 * If a value fits no variant of a union, keeps only the errors of the variants that have its type.
 * If no variant has this type, keeps only the error of the union, which is the last error.
 */
function chooseVariants(errors: readonly SchemaError[]): SchemaError[] {
  const selection: SchemaError[] = [];
  for (const error of errors) {
    if (error.keyword !== 'anyOf') {
      selection.push(error);
      continue;
    }
    const variants = `${error.schemaPath}/anyOf/`;
    const isInside = ({ schemaPath, instancePath }: SchemaError) =>
      schemaPath.startsWith(variants) && `${instancePath}/`.startsWith(`${error.instancePath}/`);
    const from = selection.findLastIndex((each) => !isInside(each)) + 1;
    const inside = selection.splice(from);
    const isOfOtherType = (at: string) =>
      inside.some(
        ({ keyword, schemaPath, instancePath }) =>
          keyword === 'type' && schemaPath === variants + at && instancePath === error.instancePath,
      );
    const matching = inside.filter(
      ({ schemaPath }) => !isOfOtherType(schemaPath.slice(variants.length).split('/', 1)[0] ?? ''),
    );
    selection.push(...(matching.length > 0 ? matching : [error]));
  }
  return selection;
}

type PlacedProblems = readonly { readonly place: string; readonly problem: Problem }[];

function readError(root: TSchema, error: SchemaError, whole: unknown): PlacedProblems {
  const { keyword, schemaPath, instancePath } = error;
  const keys = keysOf(instancePath);
  if (keyword === 'required') {
    return error.params.requiredProperties.map((name) => {
      const missing: Wording = { code: 'missing_field', message: `${name} is missing` };
      const problem = toProblem(missing, undefined, keyword, [...keys, name]);
      return { place: `${instancePath}/${name}`, problem };
    });
  }
  // Each unexpected member also has a `boolean` error, and only that error is reported.
  if (keyword === 'additionalProperties') return [];
  if (keyword === 'boolean') {
    const object = follow(root, keysOf(schemaPath).slice(0, -1)) as TSchema & { properties: object };
    const name = keys.at(-1) ?? '';
    const names = Object.keys(object.properties).join(', ');
    const message = `There is no ${JSON.stringify(name.slice(0, 100))} here; ${names === '' ? 'it takes none' : `known: ${names}`}`;
    return [{ place: instancePath, problem: toProblem({ message }, undefined, keyword, keys) }];
  }
  const value = follow(whole, keys);
  const wording = findWording(root, keysOf(schemaPath), value, keyword);
  const reason = keyword === '~refine' ? { ...wording, message: error.message } : wording;
  return [{ place: instancePath, problem: toProblem(reason, value, keyword, keys) }];
}

function findWording(
  root: TSchema,
  path: readonly string[],
  value: unknown,
  keyword: string,
): Wording | undefined {
  for (let end = path.length; end >= 0; end--) {
    const wording = refusalOf(follow(root, path.slice(0, end)))?.wording;
    if (wording !== undefined) return typeof wording === 'function' ? wording(value, keyword) : wording;
  }
  return undefined;
}

function toProblem(
  wording: Refusal['wording'],
  value: unknown,
  keyword: string,
  keys: readonly string[],
): Problem {
  const text = typeof wording === 'function' ? wording(value, keyword) : wording;
  const { code = 'invalid_field', message = 'It does not fit', details = pathText(keys) } = text ?? {};
  return { code, message, details };
}

function pathText(keys: readonly string[]): string {
  return keys.reduce((path, key) => {
    const name = key.slice(0, 100).toWellFormed();
    if (path === '') return name;
    return /^\d+$/.test(name) ? `${path}[${name}]` : `${path}.${name}`;
  }, '');
}

function refusalOf(schema: unknown): Refusal | undefined {
  return (schema as { readonly [refusalKey]?: Refusal } | undefined)?.[refusalKey];
}

export function keysOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export function follow(value: unknown, keys: readonly (string | number)[]): unknown {
  return keys.reduce((at, key) => (at as Readonly<Record<string, unknown>> | null | undefined)?.[key], value);
}

const utf8 = new TextEncoder();

export function idProblem(id: string): string | null {
  return id.trim() === '' ? 'is blank' : textProblem(id, MAX_ID_BYTES);
}

/**
 * Returns the reason why a string cannot be compared with ids, keys or patterns, or `null` if it
 * can.
 */
export function textProblem(text: string, maxBytes: number): string | null {
  if (text === '') return 'is empty';
  if (utf8.encode(text).length > maxBytes) return `is longer than ${maxBytes} bytes`;
  if (text.includes('\0')) return 'holds U+0000';
  return text.isWellFormed() ? null : 'holds half a surrogate pair';
}

export const uuidPattern = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
const uuid = new RegExp(uuidPattern);

export function isUuid(text: string): boolean {
  return uuid.test(text);
}
