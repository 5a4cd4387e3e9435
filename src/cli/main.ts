#!/usr/bin/env node
import { fileURLToPath } from 'node:url';
import { type Command, CommanderError } from 'commander';
import type { Cli } from './cli.ts';
import { loadDotEnv } from './dot-env.ts';
import { exitCodes } from './exit-codes.ts';
import { explainError } from './explain-error.ts';
import { createProgram } from './program.ts';
import { createTerminal } from './terminal.ts';

const environment = process.env;
const terminal = createTerminal(environment);

let program: Command | null = null;
let exitCode: number = exitCodes.ok;
try {
  const fromDotEnv = loadDotEnv();
  const entry = process.argv[1] ?? fileURLToPath(import.meta.url);
  const cli: Cli = { environment, fromDotEnv, terminal, entry };
  program = await createProgram(cli, process.argv.slice(2));
  await program.parseAsync(process.argv);
  exitCode = Number(process.exitCode ?? exitCodes.ok);
} catch (error) {
  exitCode = report(error);
}
// What is written to a pipe may still be on its way; then nothing that was left open may hold us.
process.stdout.write('', () => process.exit(exitCode));

function report(error: unknown): number {
  // Commander has told the user already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  const { message, exitCode: code, unforeseen } = explainError(error);
  const level = program?.opts<{ logLevel?: string }>().logLevel ?? environment['LOG_LEVEL'];
  const debugging = level === 'debug' || level === 'trace';
  terminal.note(`sluice: ${message}`);
  if (debugging && error instanceof Error) terminal.note(String(error.stack));
  else if (unforeseen) terminal.note('LOG_LEVEL=debug shows where it happened.');
  return code;
}
