import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { type Static, Type } from 'typebox';
import { readOperatorFile } from '../../base/operator-file/read.ts';
import { listOf, objectOf, rule, text } from '../../base/operator-file/schema.ts';
import { ruled } from '../../base/validation.ts';
import type { SourceAccess } from './context.ts';
import { duration, millisecondsOf, type SourceDefinition } from './schema.ts';
import { type OpenItem, type Source, SourceFailure, type Variables } from './source.ts';

/**
 * A load reads the standard output of a program that the operator lists in SOURCE_COMMANDS. A
 * schedule specifies the command and its parameters. Each parameter is part of a single argument.
 * No shell interprets the arguments.
 */

const command = objectOf('a command', 'A program whose standard output is loaded.', {
  run: Type.Array(
    text({
      maxChars: 4_000,
      pattern: ['^[^\\u0000]*$', 'must not hold the character 0'],
      description: 'The program, then its arguments.',
    }),
    { minItems: 1, maxItems: 200 },
  ),
  timeout: Type.Optional(duration('Time limit. Default: 10m.', 1_000, 86_400_000)),
  env: Type.Optional(
    listOf(
      text({
        maxChars: 200,
        pattern: ['^[A-Za-z_][A-Za-z0-9_]*$', 'must be the name of an environment variable'],
        description: 'A name.',
      }),
      'Environment variables of the worker that it gets.',
      100,
    ),
  ),
  environments: Type.Optional(
    listOf(
      text({ maxChars: 63, description: 'A name.' }),
      'Environments that may use it. Default: all.',
      100,
    ),
  ),
});
type Command = Static<typeof command>;

const maxCommands = 1_000;
const commandsFile = {
  schema: Type.Unsafe<Readonly<Record<string, Command>>>({
    type: 'object',
    additionalProperties: command,
    propertyNames: ruled(Type.String(), (name) =>
      /^[a-z0-9][a-z0-9_-]{0,62}$/.test(name) ? null : 'must be 1 to 63 of a-z, 0-9, _ and -',
    ),
    maxProperties: maxCommands,
    problem: rule(`must be an object of at most ${maxCommands} commands`),
  }),
  emptyHint: 'without commands it is written `{}`',
  check: () => undefined,
};

export const readCommandsFile = (bytes: Uint8Array) => readOperatorFile(bytes, commandsFile);

export type Commands = ReadonlyMap<string, Command>;

export async function readCommands(file: string | null, environment: string): Promise<Commands> {
  if (file === null) return new Map();
  const bytes = await readFile(file).catch((cause: NodeJS.ErrnoException) => {
    throw new SourceFailure('invalid_commands', `SOURCE_COMMANDS cannot be read: ${cause.code}`, { cause });
  });
  const { value, problems } = readCommandsFile(bytes);
  if (value === null) {
    const [{ line, message } = { line: 1, message: 'it is invalid' }] = problems;
    throw new SourceFailure('invalid_commands', `SOURCE_COMMANDS, line ${line}: ${message}`);
  }
  const commands = Object.entries(value);
  return new Map(commands.filter(([, each]) => each.environments?.includes(environment) ?? true));
}

/** Dates relative to the due time, in the schedule's time zone. */
export interface Dates extends Readonly<Record<'today' | 'yesterday', string>> {}

const anyDates: Dates = { today: '', yesterday: '' };

export function commandProblem(
  commands: Commands | SourceFailure,
  { name, parameters }: SourceDefinition<'command'>,
): SourceFailure | null {
  if (commands instanceof SourceFailure) return commands;
  const command = commands.get(name);
  if (command === undefined) {
    const names = [...commands.keys()].sort().join(', ') || 'none';
    const message = `${name} is not in SOURCE_COMMANDS for this environment. Commands: ${names}`;
    return new SourceFailure('unknown_command', message);
  }
  const placeholders = new Set(command.run.flatMap(placeholdersOf));
  const unused = Object.keys(parameters).find((each) => !placeholders.has(each));
  if (unused !== undefined) {
    return new SourceFailure('unknown_parameter', `${name} has no placeholder {${unused}}`);
  }
  const values = { ...anyDates, ...parameters };
  const missing = [...placeholders].find((each) => !Object.hasOwn(values, each));
  if (missing === undefined) return null;
  return new SourceFailure('missing_parameter', `${name} needs a value for the parameter ${missing}`);
}

const placeholder = /\{([a-z][a-z0-9_]*)\}/g;

const placeholdersOf = (argument: string): string[] =>
  [...argument.matchAll(placeholder)].map(([, name = '']) => name);

export function openCommand(
  definition: SourceDefinition<'command'>,
  { sourceCommands, environment, workerVariables }: SourceAccess,
  dates: Dates,
): Source {
  const { name, parameters } = definition;
  return {
    async list() {
      const commands = await readCommands(sourceCommands, environment);
      const problem = commandProblem(commands, definition);
      const command = commands.get(name);
      if (problem !== null || command === undefined) throw problem;
      const values: Readonly<Record<string, string>> = { ...dates, ...parameters };
      const run = command.run.map((argument) =>
        argument.replace(placeholder, (_, parameter: string) => values[parameter] ?? ''),
      );
      const open = (_: unknown, signal: AbortSignal) =>
        runCommand(name, { ...command, run }, workerVariables, signal);
      return [{ key: `command ${name}`, filename: name, version: null, open }];
    },
  };
}

function pick(names: readonly string[], variables: Variables): Record<string, string> {
  const pairs = names.map((name): [string, string] => {
    const value = variables[name];
    if (value !== undefined) return [name, value];
    throw new SourceFailure('missing_variable', `The environment variable ${name} is not set`);
  });
  return Object.fromEntries(pairs);
}

interface Program {
  readonly child: ChildProcess;
  readonly output: Readable;
  readonly complaints: () => string;
}

async function start(
  name: string,
  [program = '', ...args]: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<Program> {
  try {
    const child = spawn(program, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    // When the program ends, Node would discard its unread output. The second stream keeps it.
    const output = child.stdout.pipe(new PassThrough());
    const complaints = keepLastBytes(child.stderr);
    await once(child, 'spawn');
    return { child, output, complaints };
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new SourceFailure('command_failed', `${name} cannot be started: ${code}`, { cause });
  }
}

async function runCommand(
  name: string,
  { run, timeout = '10m', env: names = [] }: Command,
  variables: Variables,
  signal: AbortSignal,
): Promise<OpenItem> {
  signal.throwIfAborted();
  const limitMs = millisecondsOf(timeout);
  const env = pick(names, variables);
  const cwd = await mkdtemp(join(tmpdir(), 'sluice-command-'));
  const removeFolder = () => rm(cwd, { recursive: true, force: true });
  const { child, output, complaints } = await start(name, run, { cwd, env }).catch(async (error: unknown) => {
    await removeFolder();
    throw error;
  });
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  child.once('exit', () => killGroup(child));
  let isLate = false;
  const stop = (): void => {
    killGroup(child);
    child.stdout?.destroy();
    child.stderr?.destroy();
    output.destroy();
  };
  const timer = setTimeout(() => {
    isLate = true;
    stop();
  }, limitMs);
  signal.addEventListener('abort', stop);

  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      yield* output as AsyncIterable<Uint8Array>;
    } catch (error) {
      if (!isLate && !signal.aborted) throw error;
    }
    await closed;
    signal.throwIfAborted();
    if (isLate) throw new SourceFailure('command_timeout', `${name} did not end within ${timeout}`);
    if (child.exitCode === 0) return;
    const end = child.exitCode === null ? `was ended by ${child.signalCode}` : `ended with ${child.exitCode}`;
    const reason = lastLines(hideValues(complaints(), env));
    throw new SourceFailure('command_failed', reason === '' ? `${name} ${end}` : `${name} ${end}: ${reason}`);
  }

  return {
    bytes: read(),
    version: null,
    hints: {},
    mayBeEmpty: true,
    stallMs: limitMs,
    async close() {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      stop();
      await closed;
      await removeFolder();
    },
  };
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const lastBytes = 4_000;

/**
 * Reads the stream continuously, so that its writer never waits. Returns a function that returns
 * the last bytes read.
 */
function keepLastBytes(stream: Readable): () => string {
  let kept = Buffer.alloc(0);
  stream.on('data', (piece: Buffer) => {
    kept = Buffer.concat([kept, piece]).subarray(-lastBytes);
  });
  return () => kept.toString();
}

/** Minimum length of a secret. Shorter values are not hidden. */
const shortestSecret = 4;

function hideValues(output: string, env: Readonly<Record<string, string>>): string {
  return Object.entries(env)
    .filter(([, value]) => value.length >= shortestSecret)
    .sort(([, a], [, b]) => b.length - a.length)
    .reduce((text, [name, value]) => text.replaceAll(value, () => `\${${name}}`), output);
}

const shownLines = 5;

function lastLines(output: string): string {
  const lines = output.split(/[\r\n]+/).filter((line) => line.trim() !== '');
  return lines.slice(-shownLines).join(' / ').slice(-1_000);
}
