// The checks that must pass before a move writes to a database.
import type { ClientBase } from 'pg';
import type { Config } from '../config.ts';
import { type Finding, failed, ok, sentenceOf, warning } from '../doctor/check.ts';
import { checkPostgres } from '../doctor/check-postgres.ts';
import { checkRedis } from '../doctor/check-redis.ts';
import { connectForCopy } from '../postgres/database-copy/read-database.ts';
import { hasSchema } from '../postgres/database-copy/write-database.ts';

/** These checks of the doctor are about a service that runs there already. */
const later = new Set(['migrations', 'event retention']);

/**
 * Finds what speaks for and against a move to the database and queue of `config`. `source` identifies the database that the data
 * comes from. Writes nothing.
 * @throws the server's error if it refuses the connection.
 */
export async function checkTarget(url: string, config: Config, source: string): Promise<Finding[]> {
  const found = await checkPostgres(url, config);
  // A server that takes no work has no answer to what follows.
  const general = found.filter(({ check, status }) => status === 'failed' || !later.has(check));
  const client = await connectForCopy(url);
  try {
    const own = [
      await checkRights(client),
      ...(await checkTexts(client)),
      await checkUse(client),
      await checkContents(client, source),
    ];
    return [...general, ...own, ...(await checkQueue(config))];
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function checkQueue(config: Config): Promise<Finding[]> {
  try {
    return await checkRedis(config);
  } catch (error) {
    return [failed('redis', sentenceOf(error), 'Is it running, and is its URL right?')];
  }
}

async function checkRights(client: ClientBase): Promise<Finding> {
  const check = 'rights for a move';
  const { rows } = await client.query<{ role: string; missing: string[] }>(`
    select
      current_user as role,
      array_remove(array[
        case when not has_database_privilege(current_database(), 'create') then 'create' end,
        case when not has_database_privilege(current_database(), 'temporary') then 'temporary' end
      ], null) as missing`);
  const { role = '', missing = [] } = rows[0] ?? {};
  if (missing.length > 0) {
    const advice = `As the owner of the database: grant ${missing.join(', ')} on database … to ${role}.`;
    return failed(check, `role ${role} lacks ${missing.join(' and ')} on the database`, advice);
  }
  const language = await client.query<{ may: boolean | null }>(
    `select bool_or(has_language_privilege(oid, 'usage')) as may from pg_language where lanname = 'plpgsql'`,
  );
  if (language.rows[0]?.may !== true) {
    return failed(
      check,
      'the language plpgsql is missing, or may not be used',
      'Run: create extension plpgsql.',
    );
  }
  return ok(check, `role ${role} may create schemas and temporary tables; no extension is needed`);
}

async function checkTexts(client: ClientBase): Promise<Finding[]> {
  const { rows } = await client.query<{ encoding: string }>(
    `select current_setting('server_encoding') as encoding`,
  );
  const encoding = rows[0]?.encoding ?? '';
  if (encoding === 'UTF8') return [ok('encoding', encoding), await checkLetters(client)];
  const advice = "Make the database with: create database … encoding 'UTF8' template template0.";
  return [failed('encoding', `the database is ${encoding}, which cannot hold every text`, advice)];
}

/**
 * Ids, names of events and of properties are compared by their bytes. The collation of the database decides only the order of names
 * in lists, and which letters differ in nothing but their case.
 */
async function checkLetters(client: ClientBase): Promise<Finding> {
  const { rows } = await client.query<{ collation: string; folds: boolean }>(`
    select datcollate || ', ' || datctype as collation, lower('ÄΩ') = 'äω' as folds
    from pg_database
    where datname = current_database()`);
  const { collation = '', folds = false } = rows[0] ?? {};
  const found = `${collation}: keys are compared by their bytes all the same`;
  if (folds) return ok('collation', found);
  const advice =
    'Searches of file names and e-mail addresses tell Ä from ä here. If that matters, make the database with a locale of UTF-8.';
  return warning('collation', `${found}; upper and lower case are known of ASCII only`, advice);
}

/** A service that runs there would write beside us. */
async function checkUse(client: ClientBase): Promise<Finding> {
  const { rows } = await client.query<{ names: string[] | null }>(`
    select array_agg(distinct application_name) as names
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and application_name like 'sluice %' and application_name not in ('sluice copy', 'sluice doctor')`);
  const names = rows[0]?.names ?? [];
  const check = 'use';
  if (names.length === 0) return ok(check, 'no sluice runs on the database');
  return failed(
    check,
    `a sluice runs on the database: ${names.slice(0, 5).join(', ')}`,
    'Stop it first, and begin with a database that holds nothing of it.',
  );
}

/** The database must hold nothing of sluice. */
async function checkContents(client: ClientBase, source: string): Promise<Finding> {
  const check = 'contents';
  // A managed server may not tell; it is not the embedded one.
  if ((await readIdentity(client).catch(() => null)) === source)
    return failed(
      check,
      'this is the server that the data comes from',
      'Name the PostgreSQL that it is to go to.',
    );
  if (!(await hasSchema(client))) return ok(check, 'nothing of sluice');
  return failed(
    check,
    'the database has a schema sluice already',
    'Name a database without one; or, to give the old one up, rename or drop its schema.',
  );
}

/** Returns what identifies a database and its data for as long as they live. */
export async function readIdentity(client: ClientBase): Promise<string> {
  const { rows } = await client.query<{ id: string }>(`
    select system_identifier || '/' || oid as id
    from pg_control_system(), pg_database
    where datname = current_database()`);
  return rows[0]?.id ?? '';
}
