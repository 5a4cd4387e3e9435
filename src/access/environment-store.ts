import { randomBytes, randomInt } from 'node:crypto';
import { Fault, inputError } from '../base/errors.ts';
import type { Environment } from '../domain/caller.ts';
import { displayName } from '../domain/definitions.ts';
import { entities } from '../domain/entity.ts';
import type { ExportLayout } from '../domain/export.ts';
import { inOneTransaction } from '../postgres/acts.ts';
import { camel } from '../postgres/columns.ts';
import { type Database, prepared, selectWhere, updateWhere } from '../postgres/database.ts';

const MAX_ALLOWED_ORIGINS = 100;

export interface ListedEnvironment extends Environment {
  readonly allowedOrigins: readonly string[];
  readonly exportLayout: ExportLayout;
}

const namePattern = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const tokenCharacters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const tokenLength = 8;

export function environmentNameProblem(name: string): string | null {
  if (namePattern.test(name)) return null;
  return 'name must have 1 to 63 of a-z, 0-9, _ and -, the first a letter or digit';
}

/** @throws InputError `invalid_field` if the name is invalid or already exists */
export async function createEnvironment(db: Database, name: string): Promise<ListedEnvironment> {
  const problem = environmentNameProblem(name);
  if (problem !== null) throw inputError('invalid_field', problem, 'name');
  const environment = await inOneTransaction(db, (transaction) => insertEnvironment(transaction, name));
  if (environment === null)
    throw inputError('invalid_field', `The environment ${name} exists already`, 'name');
  return environment;
}

/** Returns `null` if the name already exists. */
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

/**
 * Lets only one transaction at a time change the settings. Loads and records do not wait for the
 * lock.
 */
export async function lockEnvironment(db: Database, environmentId: number): Promise<void> {
  await selectWhere(db, 'environments', { environmentId })
    .select('environment_id')
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
}

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
  readonly allowed_origins?: readonly string[];
  readonly export_layout?: ExportLayout;
}

/** @throws InputError `not_found` for an unknown name, `invalid_field` for an invalid origin */
export async function changeEnvironment(
  db: Database,
  name: string,
  { allowed_origins, export_layout }: EnvironmentChanges,
): Promise<ListedEnvironment> {
  const origins = allowed_origins ?? [];
  const invalid = origins.find(
    (origin) => !/^https?:/.test(origin) || !URL.canParse(origin) || new URL(origin).origin !== origin,
  );
  if (invalid !== undefined) {
    const example =
      'allowed_origins must have a scheme, a host and, if needed, a port, such as https://app.example.com';
    throw inputError('invalid_field', example, `origin: ${invalid}`);
  }
  if (origins.length > MAX_ALLOWED_ORIGINS) {
    throw inputError('invalid_field', `An environment has at most ${MAX_ALLOWED_ORIGINS} origins`, 'origins');
  }
  const environment = await updateWhere(db, 'environments', { name })
    .set({
      name,
      ...(allowed_origins && { allowed_origins: [...origins] }),
      ...(export_layout && { export_layout }),
    })
    .returning(listedColumns)
    .executeTakeFirst();
  if (environment === undefined)
    throw inputError('not_found', 'There is no such environment', `name: ${name}`);
  return environment;
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

const environmentColumns = camel('environment_id', 'name', 'app_token');
const listedColumns = camel('environment_id', 'name', 'app_token', 'allowed_origins', 'export_layout');

function generateAppToken(): string {
  const pick = () => tokenCharacters[randomInt(tokenCharacters.length)];
  return `NX-${Array.from({ length: tokenLength }, pick).join('')}`;
}

const secretBytes = 32;

/**
 * Returns the secret for a purpose, which all processes share. Creates the secret if it is missing.
 */
export async function readSigningKey(db: Database, purpose: string): Promise<Buffer> {
  const find = () => selectWhere(db, 'signing_keys', { purpose }).select('secret').executeTakeFirst();
  const existing = await find();
  if (existing !== undefined) return existing.secret;
  await db
    .insertInto('signing_keys')
    .values({ purpose, secret: randomBytes(secretBytes) })
    .onConflict((conflict) => conflict.column('purpose').doNothing())
    .execute();
  const stored = await find();
  if (stored === undefined) throw new Fault(`the signing key ${purpose} was removed while it was made`);
  return stored.secret;
}
