#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { type Command, CommanderError } from 'commander';
import { exitCodes, explainError, UsageError } from './errors.ts';
import { createProgram } from './program.ts';
import type { Cli } from './settings.ts';
import { createTerminal } from './terminal.ts';

const processEnv = process.env;
// On Node 20 the SDK for S3 prints eight lines about its later versions, which are not the one that we ship.
processEnv['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
const terminal = createTerminal(processEnv);

let program: Command | null = null;
let exitCode: number = exitCodes.ok;
try {
  const fromDotEnv = loadDotEnv('.env');
  const entry = process.argv[1] ?? fileURLToPath(import.meta.url);
  const cli: Cli = { processEnv, fromDotEnv, terminal, entry };
  program = await createProgram(cli, process.argv.slice(2));
  await program.parseAsync(process.argv);
  exitCode = Number(process.exitCode ?? exitCodes.ok);
} catch (error) {
  exitCode = report(error);
}
// What is written to a pipe may still be on its way; then nothing that was left open may hold us.
process.stdout.write('', () => process.exit(exitCode));

function report(error: unknown): number {
  // Commander has printed it already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  const { message, exitCode: code, unforeseen } = explainError(error);
  const level = program?.opts<{ logLevel?: string }>().logLevel ?? processEnv['LOG_LEVEL'];
  const debugging = level === 'debug' || level === 'trace';
  terminal.inform(`sluice: ${message}`);
  if (debugging && error instanceof Error) terminal.inform(String(error.stack));
  else if (unforeseen) terminal.inform('LOG_LEVEL=debug shows where it happened.');
  return code;
}

/**
 * Takes the variables of `.env`, if the working directory has one, into the environment of this process; those that are set
 * already win. Returns the names that came from it.
 * @throws UsageError if it cannot be read.
 */
function loadDotEnv(path: string): ReadonlySet<string> {
  if (!existsSync(path)) return new Set();
  try {
    const names = Object.keys(parseEnv(readFileSync(path, 'utf8')));
    const added = names.filter((name) => process.env[name] === undefined);
    loadEnvFile(path);
    return new Set(added);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`The file .env of this folder cannot be read: ${why}`);
  }
}
