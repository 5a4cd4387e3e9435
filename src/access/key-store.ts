import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { sql } from 'kysely';
import { inputError } from '../base/errors.ts';
import { CONSOLE_SESSION_MS } from '../base/limits.ts';
import { isShownText } from '../base/wording.ts';
import { scopes as everyScope, keyScopes, type Scope } from '../domain/caller.ts';
import { inOneTransaction } from '../postgres/acts.ts';
import { camel, inMs, snake } from '../postgres/columns.ts';
import {
  type Database,
  deleteWhere,
  firstRow,
  isTrue,
  prepared,
  selectWhere,
  updateWhere,
} from '../postgres/database.ts';

const CONSOLE_LINK_MS = 15 * 60_000;
/**
 * Maximum number of sessions per key or user, including ended ones. A further session deletes the
 * oldest.
 */
const MAX_SESSIONS_PER_KEY = 100;

export type ApiKey = Awaited<ReturnType<typeof listApiKeys>>[number];

export interface NewApiKey {
  readonly label: string;
  readonly scopes?: readonly Scope[];
  readonly expiresAt?: Date | null;
}

export interface IssuedApiKey extends ApiKey {
  readonly key: string;
}

const maxLabelLength = 100;

/** @throws InputError `invalid_field` if the label, the scopes or the expiry is invalid */
export async function createApiKey(
  db: Database,
  environmentId: number,
  { label, scopes = everyScope, expiresAt = null }: NewApiKey,
): Promise<IssuedApiKey> {
  if (!isShownText(label, maxLabelLength))
    throw inputError('invalid_field', `label must have 1 to ${maxLabelLength} visible characters`, 'label');
  if (scopes.length === 0) throw inputError('invalid_field', 'scopes must have at least one scope', 'scopes');
  if (scopes.includes('browser') && scopes.length > 1) {
    throw inputError('invalid_field', 'scopes of a public key for pages may only have browser', 'scopes');
  }
  checkExpiry(expiresAt);
  const { keyId, text } = generateKey();
  const issued = await db
    .insertInto('api_keys')
    .values({
      key_id: keyId,
      environment_id: environmentId,
      label,
      digest: digestKey(text),
      scopes: keyScopes.filter((scope) => scopes.includes(scope)),
      expires_at: expiresAt,
    })
    .returning(keyColumns)
    .executeTakeFirstOrThrow();
  return { ...issued, key: text };
}

export function listApiKeys(db: Database, environmentId: number) {
  return selectWhere(db, 'api_keys', { environmentId })
    .select(keyColumns)
    .orderBy('created_at', 'desc')
    .orderBy('key_id')
    .execute();
}

/** Unlike a revoked key, a deleted one is no longer listed. */
export async function deleteApiKey(db: Database, environmentId: number, keyId: string): Promise<void> {
  await deleteWhere(db, 'api_keys', { environmentId, keyId }).execute();
}

/** Returns false if the key was already revoked. @throws InputError `not_found` */
export async function revokeApiKey(db: Database, environmentId: number, keyId: string): Promise<boolean> {
  const { numUpdatedRows } = await updateWhere(db, 'api_keys', { environmentId, keyId })
    .set({ revoked_at: sql`now()` })
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows > 0n) return true;
  const key = await selectWhere(db, 'api_keys', { environmentId, keyId }).select('key_id').executeTakeFirst();
  if (key === undefined) throw unknownKey(keyId);
  return false;
}

/**
 * Creates a key that replaces an old one. The new key has the label and scopes of the old key. The
 * old key expires at `oldExpiresAt`.
 * @throws InputError `not_found` for an unknown or revoked key, `invalid_field` for invalid dates
 */
export async function rotateApiKey(
  db: Database,
  environmentId: number,
  keyId: string,
  dates: { readonly oldExpiresAt?: Date | null; readonly expiresAt?: Date | null } = {},
): Promise<IssuedApiKey> {
  checkExpiry(dates.oldExpiresAt ?? null);
  return inOneTransaction(db, async (transaction) => {
    const old = await selectWhere(transaction, 'api_keys', { environmentId, keyId })
      .select(keyColumns)
      .where('revoked_at', 'is', null)
      .forUpdate()
      .executeTakeFirst();
    if (old === undefined) throw unknownKey(keyId);
    if (dates.oldExpiresAt != null) {
      await updateWhere(transaction, 'api_keys', { keyId })
        .set({ expires_at: sql`least(expires_at, ${dates.oldExpiresAt}::timestamptz)` })
        .execute();
    }
    const { label, scopes } = old;
    return createApiKey(transaction, environmentId, { label, scopes, expiresAt: dates.expiresAt ?? null });
  });
}

function checkExpiry(expiresAt: Date | null): void {
  if (expiresAt === null || expiresAt.getTime() > Date.now()) return;
  throw inputError('invalid_field', 'expires_at must be in the future', 'expires_at');
}

function unknownKey(keyId: string): Error {
  return inputError('not_found', 'The environment has no such key', `key_id: ${keyId}`);
}

const keyColumns = camel(
  'key_id',
  'label',
  'scopes',
  'created_at',
  'expires_at',
  'revoked_at',
  'last_used_at',
);

/**
 * 32 characters that are hard to confuse: five low bits of a random byte select one without bias.
 */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const idLength = 12;
/** 40 characters of 5 bits are 200 bits. */
const secretLength = 40;
const shape = new RegExp(`^slk_([${alphabet}]{${idLength}})_[${alphabet}]{${secretLength}}$`);

function generateKey(): { readonly keyId: string; readonly text: string } {
  const keyId = randomCharacters(idLength);
  return { keyId, text: `slk_${keyId}_${randomCharacters(secretLength)}` };
}

/** Returns the id in a key, or `null` if the text does not have the form of a key. */
export function keyIdOf(text: string): string | null {
  return shape.exec(text)?.[1] ?? null;
}

/** SHA-256 is safe here, because every secret has at least 200 random bits. */
export function digestKey(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

export function matchesDigest(text: string, digest: Uint8Array): boolean {
  return timingSafeEqual(digestKey(text), digest);
}

function randomCharacters(count: number): string {
  return Array.from(randomBytes(count), (byte) => alphabet[byte & 31]).join('');
}

const isLive = sql<boolean>`k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp())`;

export function isLiveKey(db: Database, keyId: string): Promise<boolean> {
  return isTrue(db)`select ${isLive} from api_keys k where key_id = ${keyId}`;
}

export function findKey(db: Database, keyId: string) {
  return prepared(db)
    .selectFrom('api_keys as k')
    .innerJoin('environments as e', 'e.environment_id', 'k.environment_id')
    .select(['k.digest', 'k.scopes', 'e.environment_id', 'e.name', 'e.app_token'])
    .select([isLive.as('live'), 'k.revoked_at'])
    .select(isUnused.as('unused'))
    .where('k.key_id', '=', keyId)
    .executeTakeFirst();
}

const isUnused = sql<boolean>`coalesce(k.last_used_at < now() - interval '1 minute', true)`;

/** Stores the time of last use, at most once a minute. */
export async function markUsed(db: Database, keyId: string): Promise<void> {
  await sql`
    update api_keys k
    set last_used_at = now()
    where key_id = ${keyId} and ${isUnused}`.execute(prepared(db));
}

export type ConsoleSession = Awaited<ReturnType<typeof listSessions>>[number];

export interface NewSession {
  readonly sessionId: string;
  readonly cookie: string;
  readonly environmentId: number;
  readonly holder: string;
  readonly keyId: string | null;
  readonly subject: string | null;
  /**
   * HMAC of API_KEY or ADMIN_KEY. If that key changes, the session ends. `null` for other ways to
   * sign in.
   */
  readonly mark: Buffer | null;
  readonly client: string;
  /** The session ends after CONSOLE_SESSION_MS at the latest. */
  readonly expiresAt: Date | null;
}

export async function insertSession(db: Database, { cookie, expiresAt, ...session }: NewSession) {
  return inOneTransaction(db, async (transaction) => {
    const added = await transaction
      .insertInto('console_sessions')
      .values({
        ...snake(session),
        digest: digestKey(cookie),
        expires_at: sql<Date>`least(${inMs(CONSOLE_SESSION_MS)}, ${expiresAt}::timestamptz)`,
      })
      .returning(sessionColumns)
      .executeTakeFirstOrThrow();
    await sql`
      delete from console_sessions
      where session_id in (
        select session_id
        from console_sessions
        where environment_id = ${session.environmentId} and holder = ${session.holder}
          and key_id is not distinct from ${session.keyId} and subject is not distinct from ${session.subject}
        order by created_at desc, session_id
        offset ${MAX_SESSIONS_PER_KEY}
      )`.execute(transaction);
    return added;
  });
}

/** Finds the session of a cookie, even if it has ended. */
export function findSession(db: Database, cookie: string) {
  return db
    .selectFrom('console_sessions as s')
    .innerJoin('environments as e', 'e.environment_id', 's.environment_id')
    .leftJoin('api_keys as k', 'k.key_id', 's.key_id')
    .select(['s.session_id', 's.holder', 's.key_id', 's.subject', 's.mark', 's.expires_at', 's.ended_at'])
    .select(['e.environment_id', 'e.name', 'e.app_token', 'k.scopes', 'k.revoked_at'])
    .select([
      sql<boolean>`s.ended_at is null and s.expires_at > clock_timestamp()`.as('live'),
      isLive.as('key_live'),
    ])
    .where('s.digest', '=', digestKey(cookie))
    .executeTakeFirst();
}

const isOpen = sql<boolean>`ended_at is null and expires_at > clock_timestamp()`;

export function findLiveSession(db: Database, sessionId: string) {
  return selectWhere(db, 'console_sessions', { sessionId })
    .select(camel('session_id', 'holder', 'key_id', 'subject'))
    .where(isOpen)
    .executeTakeFirst();
}

export function listSessions(db: Database, environmentId: number) {
  return selectWhere(db, 'console_sessions', { environmentId })
    .select(sessionColumns)
    .where(isOpen)
    .orderBy('created_at', 'desc')
    .orderBy('session_id')
    .execute();
}

/** Returns false if the session had already ended. @throws InputError `not_found` */
export async function endSession(db: Database, environmentId: number, sessionId: string): Promise<boolean> {
  const { numUpdatedRows } = await updateWhere(db, 'console_sessions', { environmentId, sessionId })
    .set({ ended_at: sql`now()` })
    .where('ended_at', 'is', null)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows > 0n) return true;
  const session = await selectWhere(db, 'console_sessions', { environmentId, sessionId })
    .select('session_id')
    .executeTakeFirst();
  if (session !== undefined) return false;
  throw inputError('not_found', 'There is no such session', `session_id: ${sessionId.slice(0, 100)}`);
}

export async function moveSession(db: Database, sessionId: string, environmentId: number): Promise<void> {
  await updateWhere(db, 'console_sessions', { sessionId }).set({ environment_id: environmentId }).execute();
}

export async function insertLink(db: Database, environmentId: number, token: string): Promise<void> {
  await sql`delete from console_links where expires_at < now()`.execute(db);
  await sql`
    insert into console_links (digest, environment_id, expires_at)
    values (${digestKey(token)}, ${environmentId}, ${inMs(CONSOLE_LINK_MS)})`.execute(db);
}

/** Returns `null` if the link is unknown, used or expired. */
export async function takeLink(db: Database, token: string): Promise<number | null> {
  const link = await firstRow<{ environmentId: number; isLive: boolean }>(db)`
    delete from console_links
    where digest = ${digestKey(token)}
    returning environment_id as "environmentId", expires_at > clock_timestamp() as "isLive"`;
  return link?.isLive === true ? link.environmentId : null;
}

const sessionColumns = camel(
  'session_id',
  'holder',
  'key_id',
  'subject',
  'client',
  'created_at',
  'expires_at',
);
