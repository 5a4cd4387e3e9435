import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** 32 characters, none of which is taken for another; a byte maps onto them without a bias. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const idLength = 12;
/** 5 bits each: 200 bits. */
const secretLength = 40;
const shape = new RegExp(`^slk_([${alphabet}]{${idLength}})_[${alphabet}]{${secretLength}}$`);

export interface KeyText {
  /** Public: shown in lists and logs. */
  readonly keyId: string;
  /** `slk_<keyId>_<secret>`: shown once, then known to its holder only. */
  readonly text: string;
}

export function generateKey(): KeyText {
  const keyId = randomCharacters(idLength);
  return { keyId, text: `slk_${keyId}_${randomCharacters(secretLength)}` };
}

/** The public id within a key, or null if it cannot be one of ours. */
export function keyIdOf(text: string): string | null {
  return shape.exec(text)?.[1] ?? null;
}

/** A plain digest will do: 200 random bits cannot be found by trying. */
export function digestKey(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Whether `text` is the key with that digest, in a time that does not tell how far they agree. */
export function matchesDigest(text: string, digest: Uint8Array): boolean {
  return timingSafeEqual(digestKey(text), digest);
}

function randomCharacters(count: number): string {
  return Array.from(randomBytes(count), (byte) => alphabet[byte & 31]).join('');
}
