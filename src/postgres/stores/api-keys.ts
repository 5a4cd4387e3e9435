import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { sql } from 'kysely';
import { inputError } from '../../domain/errors.ts';
import { scopes as everyScope, type Scope } from '../../domain/scope.ts';
import { isShownText } from '../../domain/shown-text.ts';
import type { Database } from '../database.ts';

/** A key as it is listed: everything but the key. */
export interface ApiKey {
  readonly keyId: string;
  readonly label: string;
  readonly scopes: readonly Scope[];
  readonly createdAt: Date;
  /** From then on the key is refused; null: never. */
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  /** To the minute; null: never. */
  readonly lastUsedAt: Date | null;
}

export interface NewApiKey {
  readonly label: string;
  /** All, unless told. */
  readonly scopes?: readonly Scope[];
  readonly expiresAt?: Date | null;
}

/** The only time that the key itself is seen. */
export interface IssuedApiKey extends ApiKey {
  readonly key: string;
}

const maxLabelLength = 100;

/** Throws `InputError` `invalid_field`: label, scopes or expiry. */
export async function createApiKey(
  db: Database,
  environmentId: number,
  { label, scopes = everyScope, expiresAt = null }: NewApiKey,
): Promise<IssuedApiKey> {
  checkLabel(label);
  if (scopes.length === 0) throw inputError('invalid_field', 'a key needs at least one scope', 'scopes');
  checkExpiry(expiresAt);
  const { keyId, text } = generateKey();
  const row = await db
    .insertInto('api_keys')
    .values({
      key_id: keyId,
      environment_id: environmentId,
      label,
      digest: digestKey(text),
      scopes: everyScope.filter((scope) => scopes.includes(scope)),
      expires_at: expiresAt,
    })
    .returning(keyColumns)
    .executeTakeFirstOrThrow();
  return { ...toApiKey(row), key: text };
}

/** Newest first, the expired and revoked ones too. */
export async function listApiKeys(db: Database, environmentId: number): Promise<ApiKey[]> {
  const rows = await db
    .selectFrom('api_keys')
    .select(keyColumns)
    .where('environment_id', '=', environmentId)
    .orderBy('created_at', 'desc')
    .orderBy('key_id')
    .execute();
  return rows.map(toApiKey);
}

/** From now on the key is refused; revoking it again changes nothing. Throws `InputError` `not_found`. */
export async function revokeApiKey(db: Database, environmentId: number, keyId: string): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('api_keys')
    .set({ revoked_at: sql`coalesce(revoked_at, now())` })
    .where('environment_id', '=', environmentId)
    .where('key_id', '=', keyId)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows === 0n) throw unknownKey(keyId);
}

/**
 * A second key with the label and scopes of the first, which stays as it is, or is given an end, so that its holders can
 * change over. Throws `InputError`: `not_found`, also for a revoked key; `invalid_field` for the dates.
 */
export async function rotateApiKey(
  db: Database,
  environmentId: number,
  keyId: string,
  dates: { readonly oldExpiresAt?: Date | null; readonly expiresAt?: Date | null } = {},
): Promise<IssuedApiKey> {
  checkExpiry(dates.oldExpiresAt ?? null);
  return db.transaction().execute(async (transaction) => {
    const old = await transaction
      .selectFrom('api_keys')
      .select(keyColumns)
      .where('environment_id', '=', environmentId)
      .where('key_id', '=', keyId)
      .where('revoked_at', 'is', null)
      .forUpdate()
      .executeTakeFirst();
    if (old === undefined) throw unknownKey(keyId);
    if (dates.oldExpiresAt != null) {
      await transaction
        .updateTable('api_keys')
        .set({ expires_at: sql`least(expires_at, ${dates.oldExpiresAt}::timestamptz)` })
        .where('key_id', '=', keyId)
        .execute();
    }
    const { label, scopes } = toApiKey(old);
    return createApiKey(transaction, environmentId, { label, scopes, expiresAt: dates.expiresAt ?? null });
  });
}

function checkLabel(label: string): void {
  if (isShownText(label, maxLabelLength)) return;
  throw inputError('invalid_field', `a label has 1 to ${maxLabelLength} visible characters`, 'label');
}

function checkExpiry(expiresAt: Date | null): void {
  if (expiresAt === null || expiresAt.getTime() > Date.now()) return;
  throw inputError('invalid_field', 'an expiry is a date to come', 'expires_at');
}

function unknownKey(keyId: string): Error {
  return inputError('not_found', 'the environment has no such key', `key_id: ${keyId}`);
}

const keyColumns = [
  ...(['key_id', 'label', 'scopes', 'created_at'] as const),
  ...(['expires_at', 'revoked_at', 'last_used_at'] as const),
] as const;

interface KeyRow {
  key_id: string;
  label: string;
  scopes: string[];
  created_at: Date;
  expires_at: Date | null;
  revoked_at: Date | null;
  last_used_at: Date | null;
}

function toApiKey(row: KeyRow): ApiKey {
  return {
    keyId: row.key_id,
    label: row.label,
    scopes: everyScope.filter((scope) => row.scopes.includes(scope)),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
  };
}

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

function generateKey(): KeyText {
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

const secretBytes = 32;

/** The secret for a purpose, the same for every process: of those that make it at once, one is kept. */
export async function readSigningKey(db: Database, purpose: string): Promise<Buffer> {
  const known = await find(db, purpose);
  if (known !== undefined) return known;
  await db
    .insertInto('signing_keys')
    .values({ purpose, secret: randomBytes(secretBytes) })
    .onConflict((conflict) => conflict.column('purpose').doNothing())
    .execute();
  const made = await find(db, purpose);
  if (made === undefined) throw new Error(`the signing key ${purpose} was removed while it was made`);
  return made;
}

async function find(db: Database, purpose: string): Promise<Buffer | undefined> {
  const row = await db
    .selectFrom('signing_keys')
    .select('secret')
    .where('purpose', '=', purpose)
    .executeTakeFirst();
  return row?.secret;
}

/** Of a row of `api_keys`. */
export const isLiveText = 'revoked_at is null and (expires_at is null or expires_at > clock_timestamp())';
const isLive = sql<boolean>`${sql.raw(isLiveText)}`;

/** Whether a key is neither revoked nor expired. */
export async function isLiveKey(db: Database, keyId: string): Promise<boolean> {
  const row = await db
    .selectFrom('api_keys')
    .select(isLive.as('live'))
    .where('key_id', '=', keyId)
    .executeTakeFirst();
  return row?.live === true;
}

/** A key by its public id, with the environment that it opens. */
export function findKey(db: Database, keyId: string) {
  return db
    .selectFrom('api_keys as k')
    .innerJoin('environments as e', 'e.environment_id', 'k.environment_id')
    .select(['k.digest', 'k.scopes', 'e.environment_id', 'e.name', 'e.app_token'])
    .select([isLive.as('live'), 'k.revoked_at'])
    .select(isUnused.as('unused'))
    .where('k.key_id', '=', keyId)
    .executeTakeFirst();
}

/** For so long it has not been said that a key is used. */
const isUnused = sql<boolean>`coalesce(k.last_used_at < now() - interval '1 minute', true)`;

/** Says that a key is used, once a minute. */
export async function markUsed(db: Database, keyId: string): Promise<void> {
  await sql`
    update api_keys k
    set last_used_at = now()
    where key_id = ${keyId} and ${isUnused}`.execute(db);
}
