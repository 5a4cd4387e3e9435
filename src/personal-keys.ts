import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { TransientError } from './domain/errors.ts';

/** The keys of the installation, by id. The first encrypts; the last makes the hashes, which must not change when a key is added. */
export type PersonalKeys = ReadonlyMap<string, Buffer>;

export const KEY_BYTES = 32;
const oneKey = /^([a-z0-9][a-z0-9_-]{0,31}):([A-Za-z0-9+/_-]{43}=?)$/;

/** Reads `id:key`, each key 32 bytes in Base64, with commas or line ends between them. Returns null if that is not what it is. */
export function readPersonalKeys(text: string): PersonalKeys | null {
  const keys = new Map<string, Buffer>();
  for (const item of text.split(/[,\s]+/).filter((each) => each !== '')) {
    const [, id, written] = oneKey.exec(item) ?? [];
    if (id === undefined || written === undefined || keys.has(id)) return null;
    const key = Buffer.from(written, 'base64');
    if (key.length !== KEY_BYTES) return null;
    keys.set(id, key);
  }
  return keys;
}

/** The keys of one environment, derived from those of the installation: what leaks in one environment says nothing of another. */
export interface EnvironmentKeys {
  readonly hash: Buffer;
  /** The id of the key for new values. */
  readonly newest: string;
  readonly byId: ReadonlyMap<string, CipherKeys>;
}

export interface CipherKeys {
  readonly encrypt: Buffer;
  readonly nonce: Buffer;
}

/** Derives an environment's keys; null if the installation has none. `secret` is the environment's own. */
export function environmentKeys(keys: PersonalKeys, secret: string): EnvironmentKeys | null {
  const [newest] = keys.keys();
  const last = [...keys.values()].at(-1);
  if (newest === undefined || last === undefined) return null;
  const derive = (key: Buffer, use: string) => Buffer.from(hkdfSync('sha256', key, secret, use, KEY_BYTES));
  const byId = Array.from(keys, ([id, key]): [string, CipherKeys] => [
    id,
    { encrypt: derive(key, 'personal encrypt'), nonce: derive(key, 'personal nonce') },
  ]);
  return { hash: derive(last, 'personal hash'), newest, byId: new Map(byId) };
}

/** A key of one file, as it is stored: encrypted with the key of the installation that `key_id` names; `null` is for none. */
interface WrappedKey {
  readonly secret: Buffer;
  readonly key_id: string | null;
}

const wrapping = 'aes-256-gcm';
const NONCE_BYTES = 12;
const wrappingKey = (key: Buffer) => Buffer.from(hkdfSync('sha256', key, '', 'file keys', KEY_BYTES));

/** Encrypts the key of a file under the newest key of the installation, if it has any; elsewhere than at its file it opens nothing. */
export function wrapKey(keys: PersonalKeys, file: string, secret: Buffer): WrappedKey {
  const [newest] = keys;
  if (newest === undefined) return { secret, key_id: null };
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(wrapping, wrappingKey(newest[1]), nonce).setAAD(Buffer.from(file));
  const wrapped = Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
  return { secret: wrapped, key_id: newest[0] };
}

/** Thrown when the installation lacks the key that the key of a file is encrypted under. */
export class KeyAwayError extends TransientError {
  constructor(id: string) {
    super(
      `The file is encrypted under the key ${id}, and PERSONAL_KEYS has none or another of that id: add it and start again`,
    );
  }
}

/** @throws KeyAwayError */
export function unwrapKey(keys: PersonalKeys, file: string, { secret, key_id: id }: WrappedKey): Buffer {
  if (id === null) return secret;
  const key = keys.get(id);
  if (key === undefined) throw new KeyAwayError(id);
  const end = NONCE_BYTES + KEY_BYTES;
  const decipher = createDecipheriv(wrapping, wrappingKey(key), secret.subarray(0, NONCE_BYTES));
  decipher.setAAD(Buffer.from(file)).setAuthTag(secret.subarray(end));
  const clear = decipher.update(secret.subarray(NONCE_BYTES, end));
  try {
    return Buffer.concat([clear, decipher.final()]);
  } catch {
    throw new KeyAwayError(id);
  }
}
