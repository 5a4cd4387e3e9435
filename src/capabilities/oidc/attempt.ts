import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { digestKey, matchesDigest } from '../../access/key-store.ts';
import type { OidcSettings } from './settings.ts';

/** Time that a person has to sign in at the provider. */
export const ATTEMPT_MS = 10 * 60_000;

/**
 * A sign-in in progress. The browser keeps it in a cookie, signed with a key that is derived from
 * the client secret. State, nonce and verifier are derived from the cookie, so nothing is stored
 * before the browser returns.
 */
export interface Attempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Path below the console that is opened after the sign-in. */
  readonly path: string;
  readonly digest: Buffer;
}

const seedBytes = 32;

export function beginAttempt(settings: OidcSettings, path: string): { attempt: Attempt; cookie: string } {
  const seed = randomBytes(seedBytes).toString('base64url');
  const text = [seed, Date.now().toString(36), Buffer.from(path).toString('base64url')].join('.');
  return {
    attempt: attemptOf(settings, seed, path),
    cookie: `${text}.${derive(settings, 'cookie', text)}`,
  };
}

/** Returns `null` if the cookie is forged or too old. */
export function readAttempt(settings: OidcSettings, cookie: string): Attempt | null {
  const [seed = '', begun = '', path = '', signature = '', ...rest] = cookie.split('.');
  const expected = derive(settings, 'cookie', [seed, begun, path].join('.'));
  if (rest.length > 0 || !matchesDigest(signature, digestKey(expected))) return null;
  const age = Date.now() - Number.parseInt(begun, 36);
  if (!(age >= 0 && age < ATTEMPT_MS)) return null;
  return attemptOf(settings, seed, Buffer.from(path, 'base64url').toString());
}

function attemptOf(settings: OidcSettings, seed: string, path: string): Attempt {
  return {
    state: derive(settings, 'state', seed),
    nonce: derive(settings, 'nonce', seed),
    verifier: derive(settings, 'verifier', seed),
    path,
    digest: digestKey(seed),
  };
}

function derive({ issuer, clientId, clientSecret }: OidcSettings, use: string, text: string): string {
  const key = Buffer.from(hkdfSync('sha256', clientSecret, `${issuer} ${clientId}`, `sluice ${use}`, 32));
  return createHmac('sha256', key).update(text).digest('base64url');
}
