import type { Command } from 'commander';
import type { Logger } from 'pino';
import {
  createEnvironment,
  defaultEnvironmentName,
  type Environment,
  findEnvironment,
} from '../../access/environments.ts';
import { openSystem, type System } from '../../context.ts';
import { prepareDatabase } from '../../postgres/prepare.ts';
import type { ProvidedDatabase } from '../../postgres/provide.ts';
import type { Cli } from '../cli.ts';
import { UsageError } from '../exit-codes.ts';
import { readSettings, type Settings } from '../settings.ts';
import { awaitNeighbours, sessionRole } from './neighbours.ts';
import { announceNewData, provideForCommand, requireData } from './provide-for-command.ts';

/** What a command of a person works on, for as long as it runs. */
export interface Session {
  readonly settings: Settings;
  readonly database: ProvidedDatabase;
  readonly system: System;
  readonly log: Logger;
}

/** Enough for a command: one thing at a time, and the dispatching beside it. */
const poolSize = 4;

/**
 * Opens the system, on a server that runs or on one started for the purpose, and closes it after `work`. `mayCreate`: also on
 * a data directory that there is nothing in yet.
 */
export async function withSession<T>(
  cli: Cli,
  command: Command,
  work: (session: Session) => Promise<T>,
  { mayCreate = false }: { readonly mayCreate?: boolean } = {},
): Promise<T> {
  const settings = readSettings(cli, command);
  const { config } = settings;
  if (mayCreate) await announceNewData(cli.terminal, config);
  else await requireData(config);
  const log = settings.commandLog('command');
  const database = await provideForCommand(config, log);
  try {
    await prepareDatabase(database.url, config.redisUrl === null, log);
    const system = openSystem({ config, databaseUrl: database.url, log, role: sessionRole, poolSize });
    try {
      const result = await work({ settings, database, system, log });
      if (database.embedded !== null) await awaitNeighbours(system, cli.terminal);
      return result;
    } finally {
      await system.close();
    }
  } finally {
    await database.stop();
  }
}

/** The environment that a command is about. `default` is made if it is not there yet; it gets its key at the first start. */
export async function requireEnvironment({ system }: Session, name: string): Promise<Environment> {
  const known = await findEnvironment(system.db, name);
  if (known !== null) return known;
  if (name !== defaultEnvironmentName) {
    throw new UsageError(`There is no environment ${name}. Create it with \`sluice env create ${name}\`.`);
  }
  try {
    return await createEnvironment(system.db, name);
  } catch (error) {
    // Another process was faster.
    const theirs = await findEnvironment(system.db, name);
    if (theirs !== null) return theirs;
    throw error;
  }
}
