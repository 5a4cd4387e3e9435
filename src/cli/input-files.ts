import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { MAX_OPERATOR_FILE_BYTES } from '../base/limits.ts';
import type { RefusedFile } from '../base/operator-file/read.ts';
import { plural } from '../base/wording.ts';
import { expandPattern, isPattern } from '../files/expand-pattern.ts';
import { exitCodes, UsageError } from './errors.ts';
import { printable, type Terminal } from './terminal.ts';

export interface Input {
  /** Path of the file. `null` for standard input. */
  readonly path: string | null;
  readonly name: string;
  /** Length of the file. `null` if the length is unknown until everything has been read. */
  readonly bytes: number | null;
}

/**
 * Returns the files in the order of the arguments. Files of one pattern are sorted. @throws
 * UsageError
 */
export async function findInputs(names: readonly string[]): Promise<Input[]> {
  if (names.filter((name) => name === '-').length > 1)
    throw new UsageError('Standard input (-) can be read once only.');
  const inputs: Input[] = [];
  for (const name of names) inputs.push(...(await findNamed(name)));
  const paths = new Set<string | null>();
  return inputs.filter(({ path }) => !paths.has(path) && paths.add(path));
}

async function findNamed(name: string): Promise<Input[]> {
  if (name === '-') return [{ path: null, name: 'stdin', bytes: null }];
  const exact = await inspect(name);
  if (exact !== null) return [exact];
  if (!isPattern(name)) throw new UsageError(`There is no file ${name}.`);
  const matches = await expandPattern(name);
  if (matches.length === 0) throw new UsageError(`No file matches ${name}.`);
  const inputs = await Promise.all(matches.map(inspect));
  return inputs.filter((input) => input !== null);
}

async function inspect(path: string): Promise<Input | null> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw new UsageError(`${path} cannot be read: ${error.message}`);
  });
  if (stats === null) return null;
  if (stats.isDirectory())
    throw new UsageError(`${path} is a folder. Name the files, for example "${path}/*.csv".`);
  // Pipes and devices have no length.
  return { path, name: basename(path), bytes: stats.isFile() ? stats.size : null };
}

type Reading<T> = RefusedFile & { readonly value: T | null };

/**
 * Reads and checks a file of the operator. The name `-` means standard input. With --json, prints
 * problems as JSON and returns `null`. @throws UsageError
 */
export async function readOperatorFile<T>(
  name: string,
  read: (bytes: Buffer) => Reading<T>,
  { terminal, json }: { readonly terminal: Terminal; readonly json: boolean },
): Promise<T | null> {
  if (!json) return readValidFile(name, read);
  const { value, problems, problemCount } = read(await readBytes(name, MAX_OPERATOR_FILE_BYTES));
  if (value !== null) return value;
  terminal.json({ problems, problem_count: problemCount });
  process.exitCode = exitCodes.usage;
  return null;
}

/** @throws UsageError that ends with `consequence` if the file is unreadable or invalid */
export async function readValidFile<T>(
  name: string,
  read: (bytes: Buffer) => Reading<T>,
  consequence?: string,
): Promise<T> {
  const { value, ...refusal } = read(await readBytes(name, MAX_OPERATOR_FILE_BYTES));
  if (value !== null) return value;
  throw new UsageError(explainProblems(name === '-' ? 'stdin' : name, refusal, consequence));
}

/** Editors turn lines of the form `name:line:column: problem` into links. */
export function explainProblems(
  name: string,
  { problems, problemCount }: RefusedFile,
  consequence = 'nothing was applied',
): string {
  const lines = problems.map(
    ({ line, column, message }) => `${name}:${line}:${column}: ${printable(message, 400)}`,
  );
  const rest = problemCount - problems.length;
  return [
    `${name} has ${plural(problemCount, 'problem')}; ${consequence}.`,
    ...lines,
    ...(rest > 0 ? [`… and ${rest} more.`] : []),
  ].join('\n');
}

/**
 * Reads a file. Stops once there are more than `max` bytes. @throws UsageError if the file cannot
 * be read
 */
export async function readBytes(name: string, max: number): Promise<Buffer> {
  const source = name === '-' ? process.stdin : createReadStream(name);
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of source as AsyncIterable<Buffer>) {
      parts.push(part);
      length += part.length;
      if (length > max) break;
    }
  } catch (error) {
    throw new UsageError(explainUnreadable(name, error));
  }
  return Buffer.concat(parts);
}

function explainUnreadable(name: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return `There is no file ${name}.`;
  if (code === 'EISDIR') return `${name} is a folder. Name the file.`;
  return `${name} cannot be read: ${message}`;
}
