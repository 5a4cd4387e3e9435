import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

export interface Tokens {
  readonly accessToken: string;
  readonly idToken: string;
}

const cipher = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

/**
 * The key is derived from the session's cookie, which only the browser has. The database alone does
 * not reveal the tokens.
 */
export function sealTokens(tokens: Tokens, cookie: string): Buffer {
  const iv = randomBytes(ivBytes);
  const sealing = createCipheriv(cipher, keyOf(cookie), iv);
  const sealed = Buffer.concat([sealing.update(JSON.stringify(tokens)), sealing.final()]);
  return Buffer.concat([iv, sealing.getAuthTag(), sealed]);
}

/** @throws if the cookie is not the one that was passed to `sealTokens` */
export function openTokens(sealed: Buffer, cookie: string): Tokens {
  const opening = createDecipheriv(cipher, keyOf(cookie), sealed.subarray(0, ivBytes));
  opening.setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes));
  const text = Buffer.concat([opening.update(sealed.subarray(ivBytes + tagBytes)), opening.final()]);
  return JSON.parse(text.toString()) as Tokens;
}

function keyOf(cookie: string): Buffer {
  return Buffer.from(hkdfSync('sha256', cookie, '', 'sluice tokens of a session', 32));
}
