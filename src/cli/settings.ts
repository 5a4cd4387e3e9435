import type { Command } from 'commander';
import type { Logger } from 'pino';
import { type Config, readConfig } from '../config.ts';
import { createLogger } from '../telemetry/logger.ts';
import type { Cli } from './cli.ts';
import { type Environment, overrideEnvironment } from './environment.ts';
import { logConsole } from './service/log-console.ts';

/** The configuration of one run, with the flags taken in. */
export interface Settings {
  readonly config: Config;
  /** For processes that are to see the same configuration: the flags stand in it as variables. */
  readonly environment: Environment;
  /** For a service: everything at LOG_LEVEL. */
  readonly serviceLog: (role: string) => Logger;
  /** For a command of a person, who is told by the command itself: errors only, unless a level was asked for. */
  readonly commandLog: (role: string) => Logger;
}

/** Flag, as commander names it, and the setting that it stands for. */
const flags = {
  dataDir: 'DATA_DIR',
  databaseUrl: 'DATABASE_URL',
  redisUrl: 'REDIS_URL',
  logLevel: 'LOG_LEVEL',
  host: 'HOST',
  port: 'PORT',
} as const;

/** Flags that every command takes. */
export function addGlobalOptions(program: Command): void {
  program
    .option('--data-dir <folder>', 'folder of the embedded database and the files (DATA_DIR)')
    .option('--database-url <url>', 'PostgreSQL to use instead of the embedded one (DATABASE_URL)')
    .option('--redis-url <url>', 'Redis for the queue (REDIS_URL)')
    .option('--log-level <level>', 'trace, debug, info, warn, error or silent (LOG_LEVEL)');
}

/** Flags of those that listen. */
export function addListenOptions(command: Command): Command {
  return command
    .option('--port <number>', 'port to listen on; 0 takes any free one (PORT)')
    .option('--host <address>', 'address to listen on; 0.0.0.0 for all (HOST)');
}

/** The settings that flags give, by their names in the environment. */
export function readFlags(command: Command): Readonly<Record<string, string>> {
  const given: Record<string, unknown> = command.optsWithGlobals();
  const found: Record<string, string> = {};
  for (const [flag, name] of Object.entries(flags)) {
    const value = given[flag];
    if (typeof value === 'string') found[name] = value;
  }
  return found;
}

/** `data-dir` for DATA_DIR. */
export function flagName(setting: string): string {
  return setting.toLowerCase().replaceAll('_', '-');
}

/**
 * `own` are settings that the command insists on, against flags and environment.
 * @throws ConfigError
 */
export function readSettings(cli: Cli, command: Command, own: Environment = {}): Settings {
  const overrides: Environment = { ...readFlags(command), ...own };
  const environment = overrideEnvironment(cli.environment, overrides);
  const config = readConfig(cli.environment, overrides);
  const asked = (environment['LOG_LEVEL'] ?? '') !== '';
  return {
    config,
    environment,
    serviceLog: (role) => {
      const log = createLogger(config.logLevel, role);
      logConsole(log);
      return log;
    },
    commandLog: (role) => createLogger(asked ? config.logLevel : 'error', role),
  };
}
