import { randomBytes, randomInt } from 'node:crypto';
import { Fault, inputError } from '../base/errors.ts';
import { defaultEnvironmentName, type Environment } from '../domain/caller.ts';
import { displayName } from '../domain/definitions.ts';
import { entities } from '../domain/entity.ts';
import type { ExportLayout } from '../domain/export.ts';
import { camel } from '../postgres/columns.ts';
import { type Database, prepared, selectWhere, updateWhere } from '../postgres/database.ts';
import { createApiKey } from './key-store.ts';

const MAX_ALLOWED_ORIGINS = 100;

export interface ListedEnvironment extends Environment {
  /** Origins of the pages that may send records. */
  readonly allowedOrigins: readonly string[];
  /** The layout of exports that name none. */
  readonly exportLayout: ExportLayout;
}

const namePattern = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const tokenCharacters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const tokenLength = 8;

/** Throws `InputError` `invalid_field`: a name that is not allowed, or that is taken. */
export async function createEnvironment(db: Database, name: string): Promise<ListedEnvironment> {
  if (!namePattern.test(name)) {
    const rule = '1 to 63 of a-z, 0-9, _ and -, the first a letter or digit';
    throw inputError('invalid_field', `an environment is named by ${rule}`, 'name');
  }
  const environment = await db.transaction().execute((transaction) => insertEnvironment(transaction, name));
  if (environment === null) throw inputError('invalid_field', `environment ${name} exists`, 'name');
  return environment;
}

/** Returns `null` if the name is taken. */
async function insertEnvironment(transaction: Database, name: string): Promise<ListedEnvironment | null> {
  const environment = await transaction
    .insertInto('environments')
    .values({ name, app_token: generateAppToken() })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .returning(listedColumns)
    .executeTakeFirst();
  if (environment === undefined) return null;
  await addAutoProperties(transaction, environment.environmentId);
  return environment;
}

const autoProperties = ['first_seen_at', 'last_seen_at'];

/** Lists the columns of the profile tables as properties. Call it in the transaction that makes the environment. */
async function addAutoProperties(db: Database, environmentId: number): Promise<void> {
  const rows = entities.flatMap((entity) =>
    autoProperties.map((key) => ({
      environment_id: environmentId,
      entity,
      key,
      display_name: displayName(key),
      data_type: 'date',
      is_auto_property: true,
    })),
  );
  await db.insertInto('properties').values(rows).execute();
}

/** Reads the secret of an environment, which never changes. */
export async function readRecordKey(db: Database, environmentId: number): Promise<string> {
  const { record_key } = await selectWhere(db, 'environments', { environmentId })
    .select('record_key')
    .executeTakeFirstOrThrow();
  return record_key;
}

export function listEnvironments(db: Database): Promise<ListedEnvironment[]> {
  return db.selectFrom('environments').select(listedColumns).orderBy('name').execute();
}

export interface EnvironmentChanges {
  /** Origins of the pages that may send records. */
  readonly allowed_origins?: readonly string[];
  /** Layout of exports that name none. */
  readonly export_layout?: ExportLayout;
}

/** @throws InputError `not_found`; `invalid_field` for what is no origin. */
export async function changeEnvironment(
  db: Database,
  name: string,
  { allowed_origins, export_layout }: EnvironmentChanges,
): Promise<ListedEnvironment> {
  const origins = allowed_origins ?? [];
  const wrong = origins.find(
    (origin) => !/^https?:/.test(origin) || !URL.canParse(origin) || new URL(origin).origin !== origin,
  );
  if (wrong !== undefined) {
    const example = 'an origin is a scheme, a host and a port if need be, such as https://app.example.com';
    throw inputError('invalid_field', example, `origin: ${wrong}`);
  }
  if (origins.length > MAX_ALLOWED_ORIGINS) {
    throw inputError('invalid_field', `an environment has at most ${MAX_ALLOWED_ORIGINS} origins`, 'origins');
  }
  const changed = await updateWhere(db, 'environments', { name })
    .set({
      name,
      ...(allowed_origins && { allowed_origins: [...origins] }),
      ...(export_layout && { export_layout }),
    })
    .returning(listedColumns)
    .executeTakeFirst();
  if (changed === undefined) throw inputError('not_found', 'there is no such environment', `name: ${name}`);
  return changed;
}

export async function readExportLayout(db: Database, environmentId: number): Promise<ExportLayout> {
  const { export_layout } = await selectWhere(db, 'environments', { environmentId })
    .select('export_layout')
    .executeTakeFirstOrThrow();
  return export_layout;
}

export async function findEnvironment(db: Database, name: string): Promise<Environment | null> {
  const row = await selectWhere(prepared(db), 'environments', { name })
    .select(environmentColumns)
    .executeTakeFirst();
  return row ?? null;
}

/** Returns the environment `default`, or creates it. Of many processes only the creator gets the first key: others wait for its commit. */
export async function ensureDefaultEnvironment(
  db: Database,
): Promise<{ readonly environment: Environment; readonly key: string | null }> {
  const known = await findEnvironment(db, defaultEnvironmentName);
  if (known !== null) return { environment: known, key: null };
  return db.transaction().execute(async (transaction) => {
    const environment = await insertEnvironment(transaction, defaultEnvironmentName);
    if (environment !== null) {
      const { key } = await createApiKey(transaction, environment.environmentId, { label: 'first key' });
      return { environment, key };
    }
    const theirs = await findEnvironment(transaction, defaultEnvironmentName);
    if (theirs === null) throw new Fault('an environment was removed while it was made');
    return { environment: theirs, key: null };
  });
}

const environmentColumns = camel('environment_id', 'name', 'app_token');
const listedColumns = camel('environment_id', 'name', 'app_token', 'allowed_origins', 'export_layout');

function generateAppToken(): string {
  const pick = () => tokenCharacters[randomInt(tokenCharacters.length)];
  return `NX-${Array.from({ length: tokenLength }, pick).join('')}`;
}

const secretBytes = 32;

/** Returns the secret for a purpose, which all processes share; makes it if there is none. */
export async function readSigningKey(db: Database, purpose: string): Promise<Buffer> {
  const find = () => selectWhere(db, 'signing_keys', { purpose }).select('secret').executeTakeFirst();
  const known = await find();
  if (known !== undefined) return known.secret;
  await db
    .insertInto('signing_keys')
    .values({ purpose, secret: randomBytes(secretBytes) })
    .onConflict((conflict) => conflict.column('purpose').doNothing())
    .execute();
  const made = await find();
  if (made === undefined) throw new Fault(`the signing key ${purpose} was removed while it was made`);
  return made.secret;
}
