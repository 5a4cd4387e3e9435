import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import { pollUntil, retry } from '../base/retry.ts';
import type { System } from '../context.ts';
import type { Actor } from '../domain/act.ts';
import { actingAs } from '../postgres/acts.ts';
import { embeddedPostgres } from '../postgres/embedded/embedded-postgres.ts';
import {
  findDatabaseUrl,
  isNewDatabase,
  type ProvidedDatabase,
  prepareDatabase,
  provideDatabase,
} from '../queue/provide-database.ts';
import { CommandFailed, UsageError } from './errors.ts';
import { type Cli, readSettings, type Settings } from './settings.ts';
import type { Terminal } from './terminal.ts';

export interface Session {
  readonly settings: Settings;
  readonly database: ProvidedDatabase;
  readonly system: System;
  readonly log: Logger;
  readonly baseUrl: string;
}

export interface Caller {
  readonly cli: Cli;
  readonly command: Command;
}

export interface SessionOptions {
  readonly mayCreate?: boolean;
  readonly mergesSmallLoads?: boolean;
}

/** A few connections suffice, because a command does one thing at a time and queues tasks. */
const poolSize = 4;

/** Uses a running database server, or starts one for this command. */
export async function withSession<T>(
  { cli, command }: Caller,
  work: (session: Session) => Promise<T>,
  { mayCreate = false, mergesSmallLoads = false }: SessionOptions = {},
): Promise<T> {
  const settings = readSettings(cli, command);
  const { config } = settings;
  if (mayCreate) await announceNewData(cli.terminal.inform, config);
  else await requireData(config);
  const log = settings.commandLog('command');
  const database = await provideForCommand(config, log);
  try {
    await prepareDatabase(database.url, config.redisUrl === null, log);
    const options = { config, databaseUrl: database.url, log, role: sessionRole, poolSize, mergesSmallLoads };
    const system = actingAs(await cli.openSystem(options), describeAccount());
    try {
      const result = await work({ settings, database, system, log, baseUrl: linkBase(config) });
      if (database.embedded !== null) await awaitOtherCommands(system, cli.terminal);
      return result;
    } finally {
      await system.close();
    }
  } finally {
    await database.stop();
  }
}

function describeAccount(): Actor {
  return { kind: 'command_line', name: accountName(), address: hostname() };
}

function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container, the user often has no name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

export interface EnvironmentSession extends Session {
  readonly environmentId: number;
}

export function withEnvironment<T>(
  caller: Caller & { readonly env: string },
  work: (session: EnvironmentSession) => Promise<T>,
  options?: SessionOptions,
): Promise<T> {
  return withSession(
    caller,
    async (session) => {
      const { environmentId } = await caller.cli.requireEnvironment(session.system, caller.env);
      return work({ ...session, environmentId });
    },
    options,
  );
}

/**
 * Returns the start of the links to the service, or '' if the operating system chooses the port.
 */
function linkBase({ publicUrl, host, port }: Config): string {
  if (publicUrl !== null) return publicUrl;
  return port === 0 ? '' : `http://${host}:${port}`;
}

type DatabaseConfig = Pick<Config, 'databaseUrl' | 'dataDir'>;

const provideTimeoutMs = 30_000;
const providePollMs = 100;

/** Waits for a database server that is starting or stopping. */
export function provideForCommand(config: Config, log: Logger): Promise<ProvidedDatabase> {
  const policy = { forMs: provideTimeoutMs, pauseMs: providePollMs, isTransient: embeddedPostgres.isInUse };
  return retry(policy, () => provideDatabase(config, log, { share: true }));
}

/** Returns the URL of a running database, and never starts one. @throws CommandFailed */
export async function findDatabase(config: DatabaseConfig): Promise<string> {
  await requireData(config);
  const url = await findDatabaseUrl(config);
  if (url !== undefined) return url;
  throw new CommandFailed(
    `Nothing runs on ${config.dataDir}. Run \`sluice start\` there, or set DATABASE_URL.`,
  );
}

/**
 * Refuses a new, empty database, because the output of the command would be misleading. @throws
 * UsageError
 */
export async function requireData(config: DatabaseConfig): Promise<void> {
  if (!(await isNewDatabase(config))) return;
  throw new UsageError(
    `There is no data of sluice in ${config.dataDir}: nothing was ever started there.\n` +
      'Run this in the folder where the server was started, or name its data: --data-dir <folder> (DATA_DIR),\n' +
      'or --database-url <url> (DATABASE_URL). `sluice start` or `sluice import` starts a new one here.',
  );
}

export async function announceNewData(say: (text: string) => void, config: DatabaseConfig): Promise<void> {
  if (await isNewDatabase(config)) say(`Making a new database in ${config.dataDir}`);
}

const rolePrefix = 'command ';
const othersPollMs = 250;

/** Other commands recognise this command by its role. */
const sessionRole = `${rolePrefix}${process.pid}`;

/** Waits until no other command uses the embedded server, which stops when this command ends. */
async function awaitOtherCommands({ db }: System, terminal: Terminal): Promise<void> {
  let isAnnounced = false;
  await pollUntil({ everyMs: othersPollMs }, async () => {
    const { rows } = await sql<{ name: string }>`
      select distinct application_name as name
      from pg_stat_activity
      where datname = current_database()
        and application_name like ${`sluice ${rolePrefix}%`}
        and application_name <> ${`sluice ${sessionRole}`}`.execute(db);
    if (rows.length === 0) return true;
    if (!isAnnounced)
      terminal.inform('Another sluice command uses the database of this one: waiting for it to end.');
    isAnnounced = true;
    return false;
  });
}
