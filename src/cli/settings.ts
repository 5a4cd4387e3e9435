import { format } from 'node:util';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import { type Config, readConfig } from '../base/config.ts';
import { createLogger } from '../base/logger.ts';
import { findMeant } from '../base/nearest.ts';
import { settings } from '../base/settings.ts';
import type { System, SystemOptions } from '../context.ts';
import type { Environment } from '../domain/caller.ts';
import type { OptionTable } from '../domain/option-table.ts';
import type { Terminal } from './terminal.ts';

export type ProcessEnv = Readonly<Record<string, string | undefined>>;

export type AddCommand = (parent: Command, cli: Cli) => void;

export interface Cli {
  readonly processEnv: ProcessEnv;
  /** Names of the variables in `processEnv` that come from .env. */
  readonly fromDotEnv: ReadonlySet<string>;
  readonly terminal: Terminal;
  /** Script that child processes run. */
  readonly entry: string;
  /** Opens a system. Its code is loaded on demand, because some commands do not need it. */
  readonly openSystem: (options: SystemOptions) => Promise<System>;
  /**
   * Finds an environment. Creates the environment `default` if it is missing. @throws UsageError
   */
  readonly requireEnvironment: (system: System, name: string) => Promise<Environment>;
  readonly figures: System['figures'];
  readonly rewriter: System['rewriter'];
  readonly optionTable: OptionTable;
  readonly definitionLists: System['definitionLists'];
}

export interface Settings {
  readonly config: Config;
  /** Variables for child processes, including those for settings given as flags. */
  readonly processEnv: ProcessEnv;
  readonly serviceLog: (role: string) => Logger;
  /** Opens the log of a command, which contains only errors by default. */
  readonly commandLog: (role: string) => Logger;
}

/** Names of settings, keyed by the names that commander gives to their flags. */
const flags = {
  dataDir: 'DATA_DIR',
  databaseUrl: 'DATABASE_URL',
  redisUrl: 'REDIS_URL',
  logLevel: 'LOG_LEVEL',
  host: 'HOST',
  port: 'PORT',
} as const;

export function addGlobalOptions(program: Command): void {
  program
    .option('--data-dir <folder>', 'folder of the embedded database and the files (DATA_DIR)')
    .option('--database-url <url>', 'PostgreSQL to use instead of the embedded one (DATABASE_URL)')
    .option('--redis-url <url>', 'Redis for the queue (REDIS_URL)')
    .option('--log-level <level>', 'trace, debug, info, warn, error or silent (LOG_LEVEL)');
}

export function readFlags(command: Command): Readonly<Record<string, string>> {
  const values: Record<string, unknown> = command.optsWithGlobals();
  const overrides: Record<string, string> = {};
  for (const [flag, name] of Object.entries(flags)) {
    const value = values[flag];
    if (typeof value === 'string') overrides[name] = value;
  }
  return overrides;
}

export function flagName(setting: string): string {
  return setting.toLowerCase().replaceAll('_', '-');
}

/**
 * Reads all settings. The settings `ofCommand` take precedence over flags and environment
 * variables. @throws ConfigError
 */
export function readSettings(cli: Names, command: Command, ofCommand: ProcessEnv = {}): Settings {
  const overrides: ProcessEnv = { ...readFlags(command), ...ofCommand };
  const processEnv = overrideProcessEnv(cli.processEnv, overrides);
  // A child process does not check the variables that it inherits, because its parent has checked
  // them.
  const misspelt = process.connected === undefined ? listMisspelt(cli) : [];
  const config = readConfig(cli.processEnv, overrides, misspelt.map(complain));
  const isLevelSet = (processEnv['LOG_LEVEL'] ?? '') !== '';
  return {
    config,
    processEnv,
    serviceLog: (role) => {
      const log = createLogger(config.logLevel, role);
      logConsole(log);
      return log;
    },
    commandLog: (role) => createLogger(isLevelSet ? config.logLevel : 'error', role),
  };
}

/** Sets variables, and removes the corresponding `NAME_FILE` variables. */
export function overrideProcessEnv(processEnv: ProcessEnv, values: ProcessEnv): ProcessEnv {
  const files = Object.keys(values).map((name) => [`${name}_FILE`, undefined]);
  return { ...processEnv, ...Object.fromEntries(files), ...values };
}

/** Logs each warning once, because BullMQ repeats its warnings for each connection to Redis. */
export function logConsole(log: Logger): void {
  const logged = new Set<string>();
  console.warn = (...words: unknown[]) => {
    const sentence = format(...words).replace(/\s+/g, ' ');
    if (!logged.has(sentence)) log.warn(sentence);
    logged.add(sentence);
  };
}

type Names = Pick<Cli, 'processEnv' | 'fromDotEnv'>;

function complain({ name, meant }: { readonly name: string; readonly meant: string }): string {
  return `${name}: is no setting of sluice. Did you mean ${meant}? Rename it, or unset it`;
}

/** Returns the misspelt names with the correct ones. */
export function listMisspelt({ processEnv, fromDotEnv }: Names) {
  return Object.keys(processEnv).flatMap((name) => {
    const meant = meantBy(name, fromDotEnv.has(name));
    return meant === undefined ? [] : [{ name, meant }];
  });
}

const settingNames = new Set(Object.values(settings).flatMap(({ name }) => [name, `${name}_FILE`]));
/**
 * Minimum length of a name that is checked for spelling. Shorter names may belong to other
 * programs, except in sluice's own .env.
 */
const leastLetters = 8;
const leastLettersInDotEnv = 4;

function meantBy(name: string, isInDotEnv: boolean): string | undefined {
  const least = isInDotEnv ? leastLettersInDotEnv : leastLetters;
  if (settingNames.has(name) || name.length < least) return undefined;
  return findMeant(name.toUpperCase(), settingNames, name.length > leastLetters ? 2 : 1);
}
