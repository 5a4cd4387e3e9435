import { format } from 'node:util';
import type { Command } from 'commander';
import { distance } from 'fastest-levenshtein';
import type { Logger } from 'pino';
import { type Config, readConfig } from '../config.ts';
import { settings } from '../settings.ts';
import { createLogger } from '../telemetry/logger.ts';
import { openActiveSpans, openTracing } from '../telemetry/open-tracing.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { text } from './options.ts';
import type { Terminal } from './terminal.ts';

/** Environment variables, as a process has them. */
export type ProcessEnv = Readonly<Record<string, string | undefined>>;

/** What every command works with; made once, by `main.ts`. */
export interface Cli {
  readonly processEnv: ProcessEnv;
  /** The variables of `processEnv` that the file .env gave. */
  readonly fromDotEnv: ReadonlySet<string>;
  readonly terminal: Terminal;
  /** The script to run for another process of ours. */
  readonly entry: string;
}

/** The configuration of one run, with the flags taken in. */
export interface Settings {
  readonly config: Config;
  /** For processes that are to see the same configuration: the flags stand in it as variables. */
  readonly processEnv: ProcessEnv;
  /** For a service: everything at LOG_LEVEL. */
  readonly serviceLog: (role: string) => Logger;
  /** For a command of a person, who is notified by the command itself: errors only, unless a level was asked for. */
  readonly commandLog: (role: string) => Logger;
  /** Traces of a service, whose log this is; null: nobody asks for them. */
  readonly openTracing: (role: string, log: Logger) => Promise<Tracing | null>;
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

/** Options of those that listen. */
export const listenOptions = {
  port: text('--port <number>', 'port to listen on; 0 takes any free one (PORT)'),
  host: text('--host <address>', 'address to listen on; 0.0.0.0 for all (HOST)'),
} as const;

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
export function readSettings(cli: Pick<Cli, 'processEnv'>, command: Command, own: ProcessEnv = {}): Settings {
  const overrides: ProcessEnv = { ...readFlags(command), ...own };
  const processEnv = overrideProcessEnv(cli.processEnv, overrides);
  const config = readConfig(cli.processEnv, overrides);
  const spans = openActiveSpans(processEnv);
  const asked = (processEnv['LOG_LEVEL'] ?? '') !== '';
  return {
    config,
    processEnv,
    serviceLog: (role) => {
      const log = createLogger(config.logLevel, role, spans);
      logConsole(log);
      return log;
    },
    openTracing: (role, log) => openTracing(spans, role, log),
    commandLog: (role) => createLogger(asked ? config.logLevel : 'error', role),
  };
}

/** Variables with other values, which win over a value of that name and over a file that holds it (NAME_FILE). */
export function overrideProcessEnv(processEnv: ProcessEnv, values: ProcessEnv): ProcessEnv {
  const files = Object.keys(values).map((name) => [`${name}_FILE`, undefined]);
  return { ...processEnv, ...Object.fromEntries(files), ...values };
}

/**
 * From now on what packages print as warnings is logged, each sentence once: BullMQ says of every connection what it thinks of
 * the settings of Redis, between the lines of JSON.
 */
export function logConsole(log: Logger): void {
  const logged = new Set<string>();
  console.warn = (...words: unknown[]) => {
    const sentence = format(...words).replace(/\s+/g, ' ');
    if (!logged.has(sentence)) log.warn(sentence);
    logged.add(sentence);
  };
}

/** Names each variable that looks like a misspelt setting, and the setting that is probably meant; a worker leaves this to its parent. */
export function warnOfMisspelt({ processEnv, fromDotEnv, terminal }: Omit<Cli, 'entry'>): void {
  if (process.connected !== undefined) return;
  for (const name of Object.keys(processEnv)) {
    const meant = findMeant(name, fromDotEnv.has(name));
    if (meant !== undefined) terminal.inform(`${name} is no setting of sluice. Did you mean ${meant}?`);
  }
}

const known = new Set(Object.values(settings).flatMap(({ name }) => [name, `${name}_FILE`]));
/** Shorter names come too close to other programs' variables. `.env` is written for sluice, so its names may be shorter. */
const leastLetters = 8;
const leastLettersInDotEnv = 4;

function findMeant(name: string, isInDotEnv: boolean): string | undefined {
  if (known.has(name) || name.length < (isInDotEnv ? leastLettersInDotEnv : leastLetters)) return undefined;
  const mostEdits = name.length > leastLetters ? 2 : 1;
  const edits = (setting: string): number => distance(name.toUpperCase(), setting);
  const [nearest] = [...known].sort((a, b) => edits(a) - edits(b));
  return nearest !== undefined && edits(nearest) <= mostEdits ? nearest : undefined;
}
