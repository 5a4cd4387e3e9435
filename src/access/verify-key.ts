/*
 * Access: who may call, and what for. An API key belongs to one environment and has scopes.
 * `verifyKey` turns a header into a caller; its cache shares look-ups. Promises: keys are compared
 * in constant time and stored as digests; a revoked or expired key is refused once the cache
 * forgets it. Browsers use `console-session.ts`.
 */

import pLimit from 'p-limit';
import { TransientError } from '../base/errors.ts';
import { RECORD_DEADLINE_MS } from '../base/limits.ts';
import { withDeadline } from '../base/timers.ts';
import { type Caller, defaultEnvironmentName, isRefusal, type KeyRefusal } from '../domain/caller.ts';
import { keyScopes, scopes } from '../domain/scope.ts';
import { render } from '../http/render.ts';
import type { Database } from '../postgres/database.ts';
import { findEnvironment, type ListedEnvironment } from './environment-store.ts';
import { type ApiKey, digestKey, findKey, keyIdOf, markUsed, matchesDigest } from './key-store.ts';

/** Look-ups at a time, and the most that wait, for keys and sessions that were not valid at their last look-up. */
export const UNKNOWN_LOOKUPS_AT_A_TIME = 2;
export const MAX_WAITING_LOOKUPS = 1_000;

/** Stands for the key of the configuration where others have their id. */
export const staticKeyId = 'API_KEY';

/** Compared with where there is no such key, so that an unknown id costs what a wrong secret does. */
const nobody = digestKey('');

/** The schemes before a key; without one the header is the key. */
const header = /^(?:(token|bearer|basic)\s+)?(\S+)$/i;

/** The key in an Authorization header; null if it has the form of none. */
function keyIn(given: string): string | null {
  const [, scheme = '', text = null] = header.exec(given) ?? [];
  if (text === null || scheme.toLowerCase() !== 'basic') return text;
  // SDKs without bearer tokens send the key as the user name; the password is ignored.
  return Buffer.from(text, 'base64').toString('utf8').split(':', 1)[0] ?? null;
}

interface Turns {
  run(credential: string, lookUp: () => Promise<Caller | KeyRefusal>): Promise<Caller | KeyRefusal>;
}

/**
 * Returns the caller of an Authorization header (`Token <key>` or a form of `keyIn`), or the reason
 * for none. `staticKey` (API_KEY) opens environment `default` with every scope.
 */
export async function verifyKey(
  db: Database,
  staticKey: string | null,
  authorization: string | undefined,
  turns: Turns = { run: (_credential, lookUp) => lookUp() },
): Promise<Caller | KeyRefusal> {
  const given = authorization?.trim() ?? '';
  if (given === '') return { refused: 'missing', keyId: null };
  const text = keyIn(given);
  if (text === null) return { refused: 'malformed', keyId: null };
  if (staticKey !== null && matchesDigest(text, digestKey(staticKey))) return defaultCaller(db);
  const keyId = keyIdOf(text);
  if (keyId === null) return { refused: 'malformed', keyId };
  return turns.run(text, () => findCaller(db, keyId, text));
}

async function findCaller(db: Database, keyId: string, text: string): Promise<Caller | KeyRefusal> {
  const row = await findKey(db, keyId);
  const matches = matchesDigest(text, row?.digest ?? nobody);
  if (row === undefined || !matches) return { refused: 'unknown', keyId };
  if (!row.live) return { refused: row.revoked_at === null ? 'expired' : 'revoked', keyId };
  // Nobody waits for it, and what it says is for people only.
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

interface Known {
  readonly caller: Caller;
  readonly expiresAt: number;
  /** From then on the next who comes has it looked up again, and does not wait for that. */
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

/** Longer than any header with one of our keys; what is longer is looked up each time, and takes no room. */
const maxHeaderLength = 256;

/**
 * Remembers the callers of valid headers for a moment, and shares look-ups under way. A hash table
 * does not compare in constant time, but timing cannot betray 200 random bits under a secret seed.
 */
export class KeyCache {
  readonly #lookUp: (header: string) => Promise<Caller | KeyRefusal>;
  readonly #ttlMs: number;
  readonly #maxKeys: number;
  readonly #now: () => number;
  readonly #known = new Map<string, Known>();
  readonly #underWay = new Map<string, Lookup>();

  constructor(lookUp: (header: string) => Promise<Caller | KeyRefusal>, options: KeyCacheOptions = {}) {
    this.#lookUp = lookUp;
    this.#ttlMs = options.ttlMs ?? 1_000;
    this.#maxKeys = options.maxKeys ?? 1_000;
    this.#now = options.now ?? (() => performance.now());
  }

  /** The caller, if known; asks nobody that it would have to wait for. */
  get(header: string): Caller | null {
    const known = this.#known.get(header);
    if (known === undefined) return null;
    const now = this.#now();
    if (now >= known.expiresAt) {
      this.#known.delete(header);
      return null;
    }
    if (now >= known.renewAt) {
      known.renewAt = known.expiresAt;
      // A failure changes nothing: the answer that is there holds until its time is up.
      this.find(header).catch(() => undefined);
    }
    return known.caller;
  }

  /** Looks the caller up, or waits for the look-up that is under way. Rejects as that does. */
  find(header: string): Promise<Caller | KeyRefusal> {
    const now = this.#now();
    const underWay = this.#underWay.get(header);
    // An old look-up that hangs may have seen what is long past.
    if (underWay !== undefined && now < underWay.startedAt + this.#ttlMs) return underWay.caller;
    const lookup: Lookup = { startedAt: now, caller: this.#lookUp(header) };
    this.#underWay.set(header, lookup);
    const remember = (caller?: Caller | KeyRefusal): void => {
      if (this.#underWay.get(header) !== lookup) return;
      this.#underWay.delete(header);
      if (caller !== undefined) this.#keep(header, caller, lookup.startedAt);
    };
    lookup.caller.then(remember, () => remember());
    return lookup.caller;
  }

  #keep(header: string, caller: Caller | KeyRefusal, askedAt: number): void {
    this.#known.delete(header);
    if (isRefusal(caller) || header.length > maxHeaderLength) return;
    for (const oldest of this.#known.keys()) {
      if (this.#known.size < this.#maxKeys) break;
      this.#known.delete(oldest);
    }
    // Counted from before the question: what was revoked after it is refused within the time.
    const expiresAt = askedAt + this.#ttlMs;
    this.#known.set(header, { caller, expiresAt, renewAt: askedAt + this.#ttlMs / 2 });
  }
}

/** The length beyond which nothing is remembered; our keys and cookies are shorter. */
const maxCredentialLength = 256;

/**
 * Keys and cookies that were valid before are looked up at once. All others share a few turns, so
 * strangers cannot use up the database connections.
 */
export class LookupTurns {
  readonly #good = new Set<string>();
  readonly #maxGood: number;
  readonly #others = pLimit(UNKNOWN_LOOKUPS_AT_A_TIME);

  constructor(maxGood = 1_000) {
    this.#maxGood = maxGood;
  }

  /** Throws `TransientError` if too many wait already, or if the database does not answer. */
  async run(credential: string, lookUp: () => Promise<Caller | KeyRefusal>): Promise<Caller | KeyRefusal> {
    const find = (): Promise<Caller | KeyRefusal> => inTime(lookUp());
    const found = await (this.#good.has(credential) ? find() : this.#inTurn(find));
    this.#remember(credential, found);
    return found;
  }

  #inTurn(find: () => Promise<Caller | KeyRefusal>): Promise<Caller | KeyRefusal> {
    if (this.#others.pendingCount >= MAX_WAITING_LOOKUPS) {
      throw new TransientError('too many unknown keys are being looked up');
    }
    return this.#others(find);
  }

  /** Remembers valid keys only, so that no stranger displaces them. */
  #remember(credential: string, found: Caller | KeyRefusal): void {
    this.#good.delete(credential);
    if (isRefusal(found) || credential.length > maxCredentialLength) return;
    for (const oldest of this.#good) {
      if (this.#good.size < this.#maxGood) break;
      this.#good.delete(oldest);
    }
    this.#good.add(credential);
  }
}

/** Bounds the wait for an answer that may never come: a frozen database breaks no connection. */
export function inTime<T>(answer: Promise<T>): Promise<T> {
  return withDeadline(answer, RECORD_DEADLINE_MS, () => {
    throw new TransientError('the database does not answer');
  });
}

/* A key as it is listed, in the API and with `--json`: never the key itself. */

export function renderKey(key: ApiKey) {
  const { keyId, label, scopes, ...times } = key;
  return render({ keyId, label, scopes: [...scopes], status: keyStatus(key), ...times });
}

export function renderEnvironment({ name, appToken, allowedOrigins, exportLayout }: ListedEnvironment) {
  return {
    ...{ name, app_token: appToken, allowed_origins: [...allowedOrigins] },
    export_layout: exportLayout,
  };
}

function keyStatus({ expiresAt, revokedAt }: ApiKey): 'live' | 'expired' | 'revoked' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= Date.now() ? 'expired' : 'live';
}
