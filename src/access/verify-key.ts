/*
 * Authenticates callers. Keys are stored as digests and compared in constant time.
 * `console-session.ts` has the sessions of browsers.
 */

import pLimit from 'p-limit';
import { TransientError } from '../base/errors.ts';
import { RECORD_DEADLINE_MS } from '../base/limits.ts';
import { withDeadline } from '../base/timers.ts';
import {
  type Caller,
  defaultEnvironmentName,
  isRefusal,
  type KeyRefusal,
  keyScopes,
  scopes,
} from '../domain/caller.ts';
import { render } from '../http/render.ts';
import type { Database } from '../postgres/database.ts';
import { findEnvironment, type ListedEnvironment } from './environment-store.ts';
import { type ApiKey, digestKey, findKey, keyIdOf, markUsed, matchesDigest } from './key-store.ts';

/** Maximum number of simultaneous look-ups of keys and cookies that have not been valid before. */
export const UNKNOWN_LOOKUPS_AT_A_TIME = 2;
export const MAX_WAITING_LOOKUPS = 1_000;

export const staticKeyId = 'API_KEY';

/**
 * A key with an unknown id is compared with this digest. Without a comparison, the faster response
 * would reveal that the id does not exist.
 */
const noDigest = digestKey('');

/** A header without a scheme is the key itself. */
const header = /^(?:(token|bearer|basic)\s+)?(\S+)$/i;

/** Returns the key in a header, or `null` if the header is malformed. */
function keyIn(value: string): string | null {
  const [, scheme = '', text = null] = header.exec(value) ?? [];
  if (text === null || scheme.toLowerCase() !== 'basic') return text;
  // SDKs without bearer tokens send the key as the user name. The password is ignored.
  return Buffer.from(text, 'base64').toString('utf8').split(':', 1)[0] ?? null;
}

export interface Turns {
  run<T extends object>(credential: string, lookUp: () => Promise<T | KeyRefusal>): Promise<T | KeyRefusal>;
}

export const noTurns: Turns = { run: (_credential, lookUp) => lookUp() };

/** `staticKey` (API_KEY) grants every scope in the environment `default`. */
export async function verifyKey(
  db: Database,
  staticKey: string | null,
  authorization: string | undefined,
  turns = noTurns,
): Promise<Caller | KeyRefusal> {
  const value = authorization?.trim() ?? '';
  if (value === '') return { refused: 'missing', keyId: null };
  const text = keyIn(value);
  if (text === null) return { refused: 'malformed', keyId: null };
  if (staticKey !== null && matchesDigest(text, digestKey(staticKey))) return defaultCaller(db);
  const keyId = keyIdOf(text);
  if (keyId === null) return { refused: 'malformed', keyId };
  return turns.run(text, () => findCaller(db, keyId, text));
}

async function findCaller(db: Database, keyId: string, text: string): Promise<Caller | KeyRefusal> {
  const row = await findKey(db, keyId);
  const matches = matchesDigest(text, row?.digest ?? noDigest);
  if (row === undefined || !matches) return { refused: 'unknown', keyId };
  if (!row.live) return { refused: row.revoked_at === null ? 'expired' : 'revoked', keyId };
  // The time of last use is only shown to people, so the request does not wait until it is stored.
  if (row.unused) markUsed(db, keyId).catch(() => undefined);
  return {
    environment: { environmentId: row.environment_id, name: row.name, appToken: row.app_token },
    scopes: keyScopes.filter((scope) => row.scopes.includes(scope)),
    keyId,
  };
}

async function defaultCaller(db: Database): Promise<Caller | KeyRefusal> {
  const environment = await findEnvironment(db, defaultEnvironmentName);
  if (environment === null) return { refused: 'unknown', keyId: staticKeyId };
  return { environment, scopes, keyId: staticKeyId };
}

interface CachedCaller {
  readonly caller: Caller;
  readonly expiresAt: number;
  /** The first request after this time renews the entry in the background. */
  renewAt: number;
}

interface Lookup {
  readonly startedAt: number;
  readonly caller: Promise<Caller | KeyRefusal>;
}

interface KeyCacheOptions {
  readonly ttlMs?: number;
  readonly maxKeys?: number;
  readonly now?: () => number;
}

/** Longer headers cannot contain a key, so they are not cached. */
const maxHeaderLength = 256;

/**
 * Caches callers of valid headers, and shares look-ups. A hash table does not compare in constant
 * time, but its hashes have a secret seed and a key has 200 random bits.
 */
export class KeyCache {
  readonly #lookUp: (header: string) => Promise<Caller | KeyRefusal>;
  readonly #ttlMs: number;
  readonly #maxKeys: number;
  readonly #now: () => number;
  readonly #cached = new Map<string, CachedCaller>();
  readonly #lookups = new Map<string, Lookup>();

  constructor(lookUp: (header: string) => Promise<Caller | KeyRefusal>, options: KeyCacheOptions = {}) {
    this.#lookUp = lookUp;
    this.#ttlMs = options.ttlMs ?? 1_000;
    this.#maxKeys = options.maxKeys ?? 1_000;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Renews an entry in the background before it expires. */
  get(header: string): Caller | null {
    const entry = this.#cached.get(header);
    if (entry === undefined) return null;
    const now = this.#now();
    if (now >= entry.expiresAt) {
      this.#cached.delete(header);
      return null;
    }
    if (now >= entry.renewAt) {
      entry.renewAt = entry.expiresAt;
      // If the renewal fails, the entry remains valid until it expires.
      this.find(header).catch(() => undefined);
    }
    return entry.caller;
  }

  find(header: string): Promise<Caller | KeyRefusal> {
    const now = this.#now();
    const running = this.#lookups.get(header);
    // A look-up that started more than `ttlMs` ago is not shared, because the key may have been
    // revoked since.
    if (running !== undefined && now < running.startedAt + this.#ttlMs) return running.caller;
    const lookup: Lookup = { startedAt: now, caller: this.#lookUp(header) };
    this.#lookups.set(header, lookup);
    const remember = (caller?: Caller | KeyRefusal): void => {
      if (this.#lookups.get(header) !== lookup) return;
      this.#lookups.delete(header);
      if (caller !== undefined) this.#keep(header, caller, lookup.startedAt);
    };
    lookup.caller.then(remember, () => remember());
    return lookup.caller;
  }

  #keep(header: string, caller: Caller | KeyRefusal, startedAt: number): void {
    this.#cached.delete(header);
    if (isRefusal(caller) || header.length > maxHeaderLength) return;
    for (const oldest of this.#cached.keys()) {
      if (this.#cached.size < this.#maxKeys) break;
      this.#cached.delete(oldest);
    }
    // The time counts from the start of the look-up, because the key may be revoked during the
    // look-up.
    const expiresAt = startedAt + this.#ttlMs;
    this.#cached.set(header, { caller, expiresAt, renewAt: startedAt + this.#ttlMs / 2 });
  }
}

/** Longer credentials cannot be ours, so they are not remembered. */
const maxCredentialLength = 256;

/**
 * Looks up keys and cookies at once if they have been valid before. All other look-ups share a
 * small limit, because they could occupy all database connections.
 */
export class LookupTurns implements Turns {
  readonly #good = new Set<string>();
  readonly #maxGood: number;
  readonly #others = pLimit(UNKNOWN_LOOKUPS_AT_A_TIME);

  constructor(maxGood = 1_000) {
    this.#maxGood = maxGood;
  }

  /** @throws TransientError if too many look-ups wait, or if the database does not respond */
  async run<T extends object>(
    credential: string,
    lookUp: () => Promise<T | KeyRefusal>,
  ): Promise<T | KeyRefusal> {
    const find = (): Promise<T | KeyRefusal> => inTime(lookUp());
    const result = await (this.#good.has(credential) ? find() : this.#inTurn(find));
    this.#remember(credential, result);
    return result;
  }

  #inTurn<T>(find: () => Promise<T>): Promise<T> {
    if (this.#others.pendingCount >= MAX_WAITING_LOOKUPS) {
      throw new TransientError('too many unknown keys are being looked up');
    }
    return this.#others(find);
  }

  /** Invalid credentials cannot displace valid ones. */
  #remember(credential: string, result: object): void {
    this.#good.delete(credential);
    if (isRefusal(result) || credential.length > maxCredentialLength) return;
    for (const oldest of this.#good) {
      if (this.#good.size < this.#maxGood) break;
      this.#good.delete(oldest);
    }
    this.#good.add(credential);
  }
}

/**
 * Without a deadline, a look-up in a frozen database would never end, because the connection stays
 * open.
 */
export function inTime<T>(answer: Promise<T>): Promise<T> {
  return withDeadline(answer, RECORD_DEADLINE_MS, () => {
    throw new TransientError('the database does not answer');
  });
}

export function renderKey(key: ApiKey) {
  const { keyId, label, scopes, ...times } = key;
  return render({ keyId, label, scopes: [...scopes], status: keyStatus(key), ...times });
}

export function renderEnvironment({ name, appToken, allowedOrigins, exportLayout }: ListedEnvironment) {
  return {
    name,
    app_token: appToken,
    allowed_origins: [...allowedOrigins],
    export_layout: exportLayout,
  };
}

function keyStatus({ expiresAt, revokedAt }: ApiKey): 'live' | 'expired' | 'revoked' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= Date.now() ? 'expired' : 'live';
}
