/** Says what `sluice upgrade` would do, and what is in its way. Changes nothing. */

import { join } from 'node:path';
import pg from 'pg';
import { readLastBackup } from '../backup/backup.ts';
import { previousFolder, readMajors } from '../backup/new-data.ts';
import type { Config } from '../config.ts';
import { plural } from '../domain/wording.ts';
import { embeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { readDisk } from '../files/disk.ts';
import { readPackage } from '../package-root.ts';
import { readMigrationState, readMigrations, unreleasedAdvice } from '../postgres/migrate.ts';
import { explainConnection } from '../postgres/sqlstate.ts';
import type { ProvidedDatabase } from '../provide-database.ts';
import { settings } from '../settings.ts';
import { type Finding, failed, ok, runChecks, warning } from './check.ts';
import { checkNode } from './check-configuration.ts';
import { checkDisk } from './check-disk.ts';

export interface UpgradeCheck {
  /** Names of variables that the file .env has. */
  readonly fromDotEnv: ReadonlySet<string>;
  /** The folder of the PostgreSQL that made the data; null for the default one. */
  readonly programs: string | null;
  /** The database, started if need be; refuses to make one. Not asked for where another major version made its data. */
  readonly provide: () => Promise<ProvidedDatabase>;
}

const deadlineMs = 60_000;
const backupMaxAgeMs = 24 * 60 * 60 * 1000;

export async function checkUpgrade(config: Config, check: UpgradeCheck): Promise<Finding[]> {
  const one = (name: string, advice: string, run: () => Promise<readonly Finding[]>) => ({
    name,
    deadlineMs,
    advice,
    run,
  });
  const reach =
    config.databaseUrl === null ? 'Is DATA_DIR right?' : 'Is PostgreSQL up, and DATABASE_URL right?';
  const mend = 'Mend this before you upgrade.';
  const look = 'May this user look at DATA_DIR?';
  return runChecks([
    one('node', look, () => checkNode()),
    one('settings', look, async () => checkSettings(check.fromDotEnv)),
    {
      ...one('postgres', `${reach} ${mend}`, () => checkPostgres(config, check)),
      advise: (error: unknown) => {
        const fault = explainConnection(error);
        return fault === null ? null : `${fault.advice} ${mend}`;
      },
    },
    one('disk', look, () => checkDisk(config)),
    one('backup', look, async () => [await checkBackup(config)]),
  ]);
}

/** Variables of schedules files, moves, traces, the SDK of S3, Node and libpq. */
const ofOthers = /^(?:SCHEDULE_|MOVE_|OTEL_|AWS_|NODE_|PG[A-Z])/;

/** Looks at `.env` only: an environment has many variables of other programs. Wrong values stop every command before this. */
function checkSettings(fromDotEnv: ReadonlySet<string>): Finding[] {
  const known = new Set<string>(Object.values(settings).map(({ name }) => name));
  const unknown = [...fromDotEnv].filter(
    (name) => !known.has(name.replace(/_FILE$/, '')) && !ofOthers.test(name),
  );
  if (unknown.length === 0) return [ok('settings', 'all are known')];
  return [
    warning(
      'settings',
      `.env has ${unknown.join(', ')}`,
      'This version has no such settings: see docs/configuration.md, and CHANGELOG.md for what was renamed.',
    ),
  ];
}

async function checkPostgres(config: Config, check: UpgradeCheck): Promise<Finding[]> {
  if (config.databaseUrl === null) {
    const majors = await readMajors(config.dataDir);
    const { data, installed } = majors;
    if (data !== undefined && data !== installed)
      return checkTakeOver(config.dataDir, majors.installed, data, check.programs);
  }
  const database = await check.provide();
  const client = new pg.Client({ connectionString: database.url, connectionTimeoutMillis: 10_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string }>(
      `select current_setting('server_version') as version`,
    );
    const version = rows[0]?.version ?? '';
    const isOld = Number.parseInt(version, 10) < 15;
    const server = isOld
      ? failed('postgres', version, 'PostgreSQL 15 or newer is needed.')
      : ok('postgres', version);
    return [server, ...(await checkMigrations(client))];
  } finally {
    await client.end().catch(() => undefined);
    await database.stop();
  }
}

/** Checks what copying data of another major version needs. */
async function checkTakeOver(
  dataDir: string,
  installed: string,
  data: string,
  programs: string | null,
): Promise<Finding[]> {
  const folder = programs ?? previousFolder(dataDir, data);
  const package_ = await embeddedPostgres.findPackage(folder);
  const found = `PostgreSQL ${data} made the data, and this version brings ${installed}`;
  const server =
    package_ === undefined
      ? failed('postgres', found, oneLine(embeddedPostgres.previousAdvice(data, folder)))
      : warning(
          'postgres',
          found,
          '`sluice upgrade` copies it, with the service stopped. Indexes are built anew.',
        );
  const [needed, { freeBytes }] = [
    await embeddedPostgres.measure(join(dataDir, 'postgres')),
    await readDisk(dataDir),
  ];
  const [needs, free] = [needed, freeBytes].map((bytes) => `${(bytes / 2 ** 30).toFixed(1)} GiB`);
  const disk =
    freeBytes > needed
      ? ok('disk of the copy', `${free} are free, and the copy takes up to ${needs}`)
      : failed(
          'disk of the copy',
          `${free} are free, and the copy takes up to ${needs}`,
          'Make room: old and new data are there at once.',
        );
  return [server, disk];
}

/** Joins commands that have a line each: `Run: a, then b`. */
function oneLine(advice: string): string {
  return advice.replace(/:\n\s*/, ': ').replaceAll(/\n\s*/g, ', then ');
}

/** A migration that holds others up, or rewrites a table, says so in a line of its own: `-- upgrade: …`. */
async function checkMigrations(client: pg.Client): Promise<Finding[]> {
  const { pending, unknown, edited, unreleased } = await readMigrationState(client);
  if (unreleased)
    return [
      failed(
        'migrations',
        `not those of this version: ${[...unknown, ...edited].join(', ')}`,
        unreleasedAdvice,
      ),
    ];
  if (unknown.length > 0)
    return [
      failed(
        'migrations',
        `a later version applied ${unknown.join(', ')}`,
        `Go on with that version; to go back to ${readPackage().version}, restore a backup that it made.`,
      ),
    ];
  if (pending.length === 0) return [ok('migrations', 'none is pending')];
  const texts = new Map((await readMigrations()).map(({ name, sql }) => [name, sql]));
  const remarks = pending.flatMap((name) =>
    upgradeRemarks(texts.get(name) ?? '').map((remark) => `${name}: ${remark}`),
  );
  const found = plural(pending.length, 'is pending', 'are pending');
  if (remarks.length === 0) return [ok('migrations', `${found}, and none takes long: ${pending.join(', ')}`)];
  return [warning('migrations', `${found}: ${pending.join(', ')}`, remarks.join('; '))];
}

export function upgradeRemarks(sql: string): string[] {
  return [...sql.matchAll(/^-- upgrade: (.+)$/gm)].flatMap(([, remark]) =>
    remark === undefined ? [] : [remark],
  );
}

async function checkBackup({ dataDir }: Config): Promise<Finding> {
  const last = await readLastBackup(dataDir);
  if (last === null)
    return warning('backup', '`sluice backup` made none', 'Make one first, with it or with pg_dump.');
  const ageMs = Date.now() - new Date(last.at).getTime();
  const hours = Math.round(ageMs / 3_600_000);
  const found = `${last.file ?? 'standard output'}, ${plural(hours, 'hour')} old`;
  return ageMs > backupMaxAgeMs
    ? warning('backup', found, 'Make a new one first: sluice backup')
    : ok('backup', found);
}
