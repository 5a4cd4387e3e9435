/** The kinds of settings: how the text of each becomes a value, and the schema that the value must fit. */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import ipaddr from 'ipaddr.js';
import { type TSchema, Type } from 'typebox';
import { isMailAddress } from './domain/notification.ts';
import { choice, rule } from './operator-file/schema.ts';

export interface Setting<S extends TSchema = TSchema> {
  readonly name: string;
  readonly fallback: string;
  readonly meaning: string;
  /** The value that `parse` returns must fit this. */
  readonly schema: S;
  /** A text that cannot be parsed stays what it is, and fails its schema. */
  readonly parse: (text: string) => unknown;
  /** Never shown. A password within a URL is not either. */
  readonly secret?: boolean;
}

const asIs = (text: string) => text;
const orNull = (text: string) => (text === '' ? null : text);
const number = (text: string) => (/^\d+$/.test(text) ? Number(text) : text);

export function text(name: string, fallback: string, meaning: string, secret = false) {
  return { name, fallback, meaning, schema: Type.String(), parse: asIs, secret };
}

/** null: it is empty. */
export function optionalText(name: string, meaning: string) {
  return { name, fallback: '', meaning, schema: Type.Union([Type.Null(), Type.String()]), parse: orNull };
}

/** Absolute; null: it is empty. */
export function optionalPath(name: string, meaning: string) {
  return { ...optionalText(name, meaning), parse: (path: string) => (path === '' ? null : resolve(path)) };
}

const items = (list: string) =>
  list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** Absolute, each. */
export function folders(name: string, meaning: string) {
  const parse = (list: string) => items(list).map((path) => resolve(path));
  return { name, fallback: '', meaning, schema: Type.Array(Type.String()), parse };
}

/** IP addresses, or networks such as 10.0.0.0/8. */
export function networks(name: string, meaning: string) {
  const problem = rule('must be IP addresses or networks such as 10.0.0.0/8, with commas between');
  const schema = Type.Array(Type.String(), { problem });
  const parse = (list: string) => (items(list).every(isNetwork) ? items(list) : list);
  return { name, fallback: '', meaning, schema, parse };
}

const isNetwork = (text: string) => ipaddr.isValid(text) || ipaddr.isValidCIDR(text);

export function integer(name: string, fallback: string, meaning: string, minimum: number, maximum: number) {
  return { name, fallback, meaning, schema: Type.Integer({ minimum, maximum }), parse: number };
}

export function workerCount(name: string, meaning: string) {
  const problem = rule('must be auto or a whole number from 0 to 256');
  const schema = Type.Integer({ minimum: 0, maximum: 256, problem });
  const parse = (count: string) => (count === 'auto' ? availableParallelism() : number(count));
  return { name, fallback: 'auto', meaning, schema, parse };
}

const units: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

export function bytes(name: string, fallback: string, meaning: string) {
  const problem = rule('must be a number of bytes such as 512m or 10g');
  const schema = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, problem });
  const parse = (size: string) => {
    const match = /^(\d+)\s*([kmgt]?)i?b?$/i.exec(size);
    return match === null ? size : Number(match[1]) * (units[match[2]?.toLowerCase() ?? ''] ?? Number.NaN);
  };
  return { name, fallback, meaning: `${meaning} Bytes, or with a unit: 64k, 10m, 2g.`, schema, parse };
}

export function oneOf<const T extends string>(
  name: string,
  fallback: T,
  meaning: string,
  allowed: readonly T[],
) {
  const schema = choice(allowed, meaning);
  return { name, fallback, meaning: `${meaning} One of ${allowed.join(', ')}.`, schema, parse: asIs };
}

export function flag(name: string, fallback: 'true' | 'false', meaning: string) {
  const parse = (text: string) => (text === 'true' ? true : text === 'false' ? false : text);
  return { name, fallback, meaning: `${meaning} One of true, false.`, schema: Type.Boolean(), parse };
}

/** null: it is empty. The value is not shown if it is wrong: it may hold a password. */
export function url(name: string, protocols: readonly string[], meaning: string) {
  const isOne = (text: string) =>
    URL.canParse(text) && protocols.includes(new URL(text).protocol.slice(0, -1));
  const schema = Type.Union([Type.Null(), Type.Refine(Type.String(), isOne)], {
    problem: () => `must be a URL that begins with ${protocols.join(':// or ')}://`,
  });
  return { name, fallback: '', meaning, schema, parse: orNull };
}

/**
 * null: it is empty. The driver means by these modes what it means by `verify-full`, and prints at every start that a later
 * version will mean less.
 */
export function postgresUrl(name: string, meaning: string) {
  const parse = (text: string) =>
    orNull(
      text.includes('uselibpqcompat=')
        ? text
        : text.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full'),
    );
  return { ...url(name, ['postgres', 'postgresql'], meaning), parse };
}

/** null: it is empty. */
export function secretKey(name: string, meaning: string) {
  const schema = Type.Union([Type.Null(), Type.String({ pattern: '^[\\x21-\\x7e]{20,200}$' })], {
    problem: () => 'must be 20 to 200 printable characters without spaces',
  });
  return { name, fallback: '', meaning, schema, parse: orNull, secret: true };
}

export function mailAddress(name: string, fallback: string, meaning: string) {
  const sentence = 'must be one plain address such as sluice@example.com';
  const schema = Type.Refine(Type.String(), isMailAddress, () => sentence);
  return { name, fallback, meaning, schema, parse: asIs };
}

/** Returns a value as it may be shown: nothing of a secret, and no password within a URL. */
export function withoutSecrets({ secret }: Pick<Setting, 'secret'>, value: string): string {
  return secret === true ? hide(value) : hidePasswords(value);
}

const hidden = '***';

function hide(value: string): string {
  return value === '' ? '' : hidden;
}

/** Up to the last `@`: a password may hold one that nobody has escaped. */
function hidePasswords(value: string): string {
  return value
    .replace(/(:\/\/[^:@/?]*:).*@/s, `$1${hidden}@`)
    .replace(/([?&][^=&]*(?:password|secret|token)[^=&]*=)[^&]*/gi, `$1${hidden}`);
}
