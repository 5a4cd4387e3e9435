/*
 * Personal data at the door: properties that an environment's rules call personal are dropped, hashed, truncated or encrypted
 * before anything of their record is stored. `src/personal-keys.ts` reads the keys, `values.ts` changes single values,
 * `properties.ts` whole records. Promises: the clear value reaches no table; without a key nothing is stored in its place.
 */
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import type { PersonalAction } from '../domain/rules.ts';
import { isObject, markedNumber, writeJson } from '../formats/json-text.ts';
import type { EnvironmentKeys } from '../personal-keys.ts';
import { truncate } from './truncate.ts';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const hashed = /^hash:[A-Za-z0-9_-]{43}$/;
/** `enc:<key>:<nonce>:<ciphertext and tag>`. */
const token = 'enc:([a-z0-9][a-z0-9_-]{0,31}):([A-Za-z0-9_-]{16}):([A-Za-z0-9_-]{22,})';
const encrypted = new RegExp(`^${token}$`);
const encryptedInJson = new RegExp(`"${token}"`, 'g');

/**
 * PersonalValues changes the values of one environment's personal properties. What it has made once it leaves as it is, so that a
 * record may pass the door again: a file of an export, a mend, a replay.
 */
export class PersonalValues {
  readonly #keys: EnvironmentKeys | null;

  /** Without keys, as where a file is only looked at, values are hidden. */
  constructor(keys: EnvironmentKeys | null) {
    this.#keys = keys;
  }

  /** Returns the value to store, undefined for none. `null` removes a property and stays. `marked`: as of `ParsedJson`. */
  change(action: PersonalAction, value: unknown, marked: boolean): unknown {
    if (value === null) return null;
    if (action === 'drop') return undefined;
    if (action === 'truncate') return this.#truncate(value);
    if (this.#keys === null) return hidden(action);
    return action === 'hash' ? this.hash(textOf(value, marked)) : this.#encrypt(value, marked, this.#keys);
  }

  /** Returns true for a value that this action has made. */
  isChanged(action: PersonalAction, value: unknown): boolean {
    if (typeof value !== 'string' || action === 'drop') return false;
    if (action === 'truncate') return truncate(value) === value;
    if (action === 'hash') return hashed.test(value);
    return this.#keys === null ? encrypted.test(value) : this.decrypt(value) !== value;
  }

  /** The hash of a value's text, which is the same for 42 and "42": a cell of CSV has no type. */
  hash(text: string): string {
    if (this.#keys === null) return hidden('hash');
    if (hashed.test(text)) return text;
    return `hash:${createHmac('sha256', this.#keys.hash).update(text).digest('base64url')}`;
  }

  #truncate(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.#truncate(each)).filter(isSaid);
    if (isObject(value)) {
      const members = Object.entries(value).map(([name, each]) => [name, this.#truncate(each)] as const);
      return Object.fromEntries(members.filter(([, each]) => isSaid(each)));
    }
    const text = textOf(value, true);
    const short = value === null ? null : truncate(text);
    return short === text ? value : (short ?? undefined);
  }

  /** The nonce is a keyed digest of the value, so that a value that comes again is unchanged. */
  #encrypt(value: unknown, marked: boolean, { newest, byId }: EnvironmentKeys): string {
    if (typeof value === 'string' && this.isChanged('encrypt', value)) return value;
    const keys = byId.get(newest);
    if (keys === undefined) throw new Error('the newest key is one of the keys');
    const clear = writeJson(value, marked);
    const nonce = createHmac('sha256', keys.nonce).update(clear).digest().subarray(0, NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', keys.encrypt, nonce);
    const sealed = Buffer.concat([cipher.update(clear, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `enc:${newest}:${nonce.toString('base64url')}:${sealed.toString('base64url')}`;
  }

  /** Returns the text of a value: of an encrypted one the clear text, unless its key is gone. */
  decrypt(text: string): string {
    const json = this.#open(encrypted.exec(text)?.slice(1) ?? []);
    if (json === null) return text;
    const value: unknown = JSON.parse(json);
    return typeof value === 'string' ? value : json;
  }

  /** Decrypts the texts within JSON; each becomes the value that it was. */
  decryptJson(json: string): string {
    if (!json.includes('"enc:')) return json;
    return json.replace(encryptedInJson, (text: string, ...parts: string[]) => this.#open(parts) ?? text);
  }

  #open([id = '', nonce = '', sealed = '']: readonly string[]): string | null {
    const keys = this.#keys?.byId.get(id);
    const bytes = Buffer.from(sealed, 'base64url');
    if (keys === undefined || bytes.length < TAG_BYTES) return null;
    const decipher = createDecipheriv('aes-256-gcm', keys.encrypt, Buffer.from(nonce, 'base64url'));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      return decipher.update(bytes.subarray(0, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    } catch {
      return null;
    }
  }
}

/** Values as they are shown where a file is only looked at. */
export const hiddenValues = new PersonalValues(null);

const hidden = (action: PersonalAction) => `(${action})`;
const isSaid = (value: unknown) => value !== undefined;

function textOf(value: unknown, marked: boolean): string {
  return typeof value === 'string' ? (markedNumber(value) ?? value) : writeJson(value, marked);
}
