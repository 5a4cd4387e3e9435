/** Kinds of settings. A kind defines how a text becomes a value, and the schema of this value. */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import ipaddr from 'ipaddr.js';
import { type TSchema, Type } from 'typebox';
import { isMailAddress } from './mail-address.ts';
import { choice, rule } from './operator-file/schema.ts';

export interface Kind<S extends TSchema = TSchema> {
  readonly name?: string;
  readonly fallback: string;
  readonly meaning: string;
  readonly schema: S;
  /**
   * Returns the value, or the text itself if it cannot be parsed. The text then violates the
   * schema.
   */
  readonly parse: (text: string) => unknown;
  /** True if the value must not be shown. Passwords in URLs are always hidden. */
  readonly secret?: boolean;
}

const asIs = (text: string) => text;
const orNull = (text: string) => (text === '' ? null : text);
const number = (text: string) => (/^\d+$/.test(text) ? Number(text) : text);

export function text(fallback: string, meaning: string, secret = false) {
  return { fallback, meaning, schema: Type.String(), parse: asIs, secret };
}

export function optionalText(meaning: string) {
  return { fallback: '', meaning, schema: Type.Union([Type.Null(), Type.String()]), parse: orNull };
}

export function optionalPath(meaning: string) {
  return { ...optionalText(meaning), parse: (path: string) => (path === '' ? null : resolve(path)) };
}

const items = (list: string) =>
  list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

export function folders(meaning: string) {
  const parse = (list: string) => items(list).map((path) => resolve(path));
  return { fallback: '', meaning, schema: Type.Array(Type.String()), parse };
}

/** Items such as `environment:VARIABLE`, whose variables begin with `prefix`. */
export function grants(prefix: string, meaning: string) {
  const problem = rule(`must be items such as default:${prefix}TOKEN, with commas between`);
  const item = Type.String({ pattern: `^[a-z0-9][a-z0-9_-]{0,62}:${prefix}[A-Z0-9_]{1,100}$`, problem });
  return { fallback: '', meaning, schema: Type.Array(item), parse: items };
}

export function networks(meaning: string) {
  const problem = rule('must be IP addresses or networks such as 10.0.0.0/8, with commas between');
  const schema = Type.Array(Type.String(), { problem });
  const parse = (list: string) =>
    items(list).every((text) => ipaddr.isValid(text) || ipaddr.isValidCIDR(text)) ? items(list) : list;
  return { fallback: '', meaning, schema, parse };
}

export function integer(fallback: string, meaning: string, minimum: number, maximum: number) {
  return { fallback, meaning, schema: Type.Integer({ minimum, maximum }), parse: number };
}

export function workerCount(meaning: string) {
  const problem = rule('must be auto or a whole number from 0 to 256');
  const schema = Type.Integer({ minimum: 0, maximum: 256, problem });
  const parse = (count: string) => (count === 'auto' ? availableParallelism() : number(count));
  return { fallback: 'auto', meaning, schema, parse };
}

const units: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

export function bytes(fallback: string, meaning: string) {
  const problem = rule('must be a number of bytes such as 512m or 10g');
  const schema = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, problem });
  const parse = (size: string) => {
    const match = /^(\d+)\s*([kmgt]?)i?b?$/i.exec(size);
    return match === null ? size : Number(match[1]) * (units[match[2]?.toLowerCase() ?? ''] ?? Number.NaN);
  };
  return { fallback, meaning: `${meaning} Bytes, or with a unit: 64k, 10m, 2g.`, schema, parse };
}

export function oneOf<const T extends string>(fallback: T, meaning: string, allowed: readonly T[]) {
  const schema = choice(allowed, meaning);
  return { fallback, meaning: `${meaning} One of ${allowed.join(', ')}.`, schema, parse: asIs };
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/**
 * Returns the milliseconds of a duration, or `null` if the text is not a duration from 1s to 24h.
 */
function readDuration(text: string): number | null {
  const [, count = '0', unit = 's'] = /^(\d{1,5})([smh])$/.exec(text) ?? [];
  const ms = Number(count) * (unitMs[unit] ?? 0);
  return ms > 0 && ms <= 24 * 3_600_000 ? ms : null;
}

export function optionalDuration(meaning: string) {
  const problem = rule('must be a time from 1s to 24h, such as 30s, 15m or 1h');
  const parse = (text: string) => readDuration(text) ?? orNull(text);
  const schema = Type.Union([Type.Null(), Type.Integer()], { problem });
  return { fallback: '', meaning, schema, parse };
}

export function rate(meaning: string) {
  const problem = rule('must be a number in a time from 1s to 24h, such as 10/1s or 600/1m');
  const schema = Type.Union([Type.Null(), Type.Object({ count: Type.Integer(), windowMs: Type.Integer() })], {
    problem,
  });
  const parse = (text: string) => {
    const [, count = '', time = ''] = /^([1-9]\d{0,8})\/(\w+)$/.exec(text) ?? [];
    const windowMs = readDuration(time);
    return windowMs === null ? orNull(text) : { count: Number(count), windowMs };
  };
  return { fallback: '', meaning, schema, parse };
}

export function flag(fallback: 'true' | 'false', meaning: string) {
  const parse = (text: string) => {
    if (text === 'true') return true;
    return text === 'false' ? false : text;
  };
  return { fallback, meaning: `${meaning} One of true, false.`, schema: Type.Boolean(), parse };
}

/** Messages do not quote the value, because it may contain a password. */
export function url(protocols: readonly string[], meaning: string) {
  const isOne = (text: string) =>
    URL.canParse(text) && protocols.includes(new URL(text).protocol.slice(0, -1));
  const schema = Type.Union([Type.Null(), Type.Refine(Type.String(), isOne)], {
    problem: () => `must be a URL that begins with ${protocols.join(':// or ')}://`,
  });
  return { fallback: '', meaning, schema, parse: orNull };
}

/**
 * Replaces each `sslmode` that the driver treats as `verify-full` by the name `verify-full`.
 * Otherwise, the driver would print a warning at every start.
 */
export function postgresUrl(meaning: string) {
  const parse = (text: string) =>
    orNull(
      text.includes('uselibpqcompat=')
        ? text
        : text.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full'),
    );
  return { ...url(['postgres', 'postgresql'], meaning), parse };
}

export function secretKey(meaning: string) {
  const schema = Type.Union([Type.Null(), Type.String({ pattern: '^[\\x21-\\x7e]{20,200}$' })], {
    problem: () => 'must be 20 to 200 printable characters without spaces',
  });
  return { fallback: '', meaning, schema, parse: orNull, secret: true };
}

export function mailAddress(fallback: string, meaning: string) {
  const sentence = 'must be one plain address such as sluice@example.com';
  const schema = Type.Refine(Type.String(), isMailAddress, () => sentence);
  return { fallback, meaning, schema, parse: asIs };
}
