// What has to be so before anything is written to the database that a move goes to.
import pg, { type ClientBase } from 'pg';
import type { Config } from '../config.ts';
import { connectForCopy } from '../database-copy/read-database.ts';
import { type Finding, failed, ok, sentenceOf, warning } from '../doctor/check.ts';
import { checkPostgres } from '../doctor/check-postgres.ts';
import { checkRedis } from '../doctor/check-redis.ts';
import { isBeingMoved, readIdentity } from '../postgres/stores/moves.ts';

/** Looked at by the doctor for a service that starts there; not yet of interest. */
const later = new Set(['migrations', 'event retention']);

/**
 * What speaks against a move to the database, queue and storage of `config`, and for it. `source` is the identity of the
 * database that the data comes from. Writes nothing.
 * @throws what the server says if it lets nobody in.
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
 * Ids, names of events and of properties are compared by their bytes, whatever the collation of the database. What it decides:
 * the order of names in lists, and which letters are the same but for their case.
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

/** Nothing of sluice, or what an earlier run of the same move has copied. */
async function checkContents(client: ClientBase, source: string): Promise<Finding> {
  const check = 'contents';
  // A managed server may not tell; it is not the embedded one.
  if ((await readIdentity(client).catch(() => null)) === source)
    return failed(
      check,
      'this is the server that the data comes from',
      'Name the PostgreSQL that it is to go to.',
    );
  if (await isBeingMoved(client)) {
    const { rows } = await client.query<{ source: string }>('select source from sluice_move.move');
    if (rows[0]?.source === source) return ok(check, 'what an earlier run of this move has copied');
    const advice =
      'Finish that move, or give it up: drop schema sluice, sluice_move cascade. Or name another database.';
    return failed(check, 'the database is being filled by a move from another data directory', advice);
  }
  const full = await findFullTables(client);
  if (full.length === 0) return ok(check, 'nothing of sluice');
  const advice =
    'Name a database of its own, which may be empty, or hold what has nothing to do with sluice.';
  const some = full.slice(0, 5).join(', ');
  return failed(check, `the database has data of sluice: ${some}${full.length > 5 ? ' …' : ''}`, advice);
}

/** Tables of ours in which there is a row. What every migration writes does not count. */
async function findFullTables(client: ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`
    select relname as name
    from pg_class
    where relnamespace = to_regnamespace('sluice') and relkind = 'r' and relname <> 'migrations'
    order by 1`);
  const full: string[] = [];
  for (const { name } of rows) {
    const table = `sluice.${pg.escapeIdentifier(name)}`;
    const found = await client.query<{ is: boolean }>(`select exists (select 1 from ${table}) as "is"`);
    if (found.rows[0]?.is === true) full.push(name);
  }
  return full;
}
