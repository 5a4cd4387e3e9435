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
  /** Variables of `processEnv` from .env. */
  readonly fromDotEnv: ReadonlySet<string>;
  readonly terminal: Terminal;
  /** Script of our other processes. */
  readonly entry: string;
  /** Loads the system, which printing commands do not need. */
  readonly openSystem: (options: SystemOptions) => Promise<System>;
  /** Creates a missing `default`. @throws UsageError */
  readonly requireEnvironment: (system: System, name: string) => Promise<Environment>;
  /** Loads figures of capabilities without a system. */
  readonly figures: System['figures'];
  readonly rewriter: System['rewriter'];
  readonly optionTable: OptionTable;
}

export interface Settings {
  readonly config: Config;
  /** Environment of other processes, with flags as variables. */
  readonly processEnv: ProcessEnv;
  /** Logs a service at LOG_LEVEL. */
  readonly serviceLog: (role: string) => Logger;
  /** Logs only errors of a command, by default. */
  readonly commandLog: (role: string) => Logger;
}

/** Maps commander's flag names to settings. */
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
  const given: Record<string, unknown> = command.optsWithGlobals();
  const found: Record<string, string> = {};
  for (const [flag, name] of Object.entries(flags)) {
    const value = given[flag];
    if (typeof value === 'string') found[name] = value;
  }
  return found;
}

export function flagName(setting: string): string {
  return setting.toLowerCase().replaceAll('_', '-');
}

/** `own` overrides flags and environment. @throws ConfigError */
export function readSettings(cli: Names, command: Command, own: ProcessEnv = {}): Settings {
  const overrides: ProcessEnv = { ...readFlags(command), ...own };
  const processEnv = overrideProcessEnv(cli.processEnv, overrides);
  // Children inherit the parent's names.
  const misspelt = process.connected === undefined ? listMisspelt(cli) : [];
  const config = readConfig(cli.processEnv, overrides, misspelt.map(complain));
  const asked = (processEnv['LOG_LEVEL'] ?? '') !== '';
  return {
    config,
    processEnv,
    serviceLog: (role) => {
      const log = createLogger(config.logLevel, role);
      logConsole(log);
      return log;
    },
    commandLog: (role) => createLogger(asked ? config.logLevel : 'error', role),
  };
}

/** Overrides variables and their files (NAME_FILE). */
export function overrideProcessEnv(processEnv: ProcessEnv, values: ProcessEnv): ProcessEnv {
  const files = Object.keys(values).map((name) => [`${name}_FILE`, undefined]);
  return { ...processEnv, ...Object.fromEntries(files), ...values };
}

/** Logs each console warning once, since BullMQ repeats one per Redis connection. */
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

/** Lists likely misspelt settings with the intended ones. */
export function listMisspelt({ processEnv, fromDotEnv }: Names) {
  return Object.keys(processEnv).flatMap((name) => {
    const meant = meantBy(name, fromDotEnv.has(name));
    return meant === undefined ? [] : [{ name, meant }];
  });
}

const known = new Set(Object.values(settings).flatMap(({ name }) => [name, `${name}_FILE`]));
/** Shorter names may be other programs'. `.env` belongs to sluice, so fewer letters suffice. */
const leastLetters = 8;
const leastLettersInDotEnv = 4;

function meantBy(name: string, isInDotEnv: boolean): string | undefined {
  if (known.has(name) || name.length < (isInDotEnv ? leastLettersInDotEnv : leastLetters)) return undefined;
  return findMeant(name.toUpperCase(), known, name.length > leastLetters ? 2 : 1);
}
