/** What `sluice import` reads: files, patterns, standard input. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { System } from '../context.ts';
import { READ_BYTES } from '../domain/limits.ts';
import { expandPattern, isPattern } from '../files/expand-pattern.ts';
import type { SourceFormat } from '../formats/detect-format.ts';
import { type ReceivedFile, receiveLocal } from '../load/receive/receive.ts';
import { receivingStore } from '../load/received-files.ts';
import { UsageError } from './errors.ts';

/** A file, or standard input. */
export interface Input {
  /** Path, or null for standard input. */
  readonly path: string | null;
  /** As the job is to be called. */
  readonly name: string;
  /** Length in bytes; null where it is not known before the end. */
  readonly bytes: number | null;
}

/**
 * The inputs that the arguments mean, in their order; a pattern's files by name. Throws `UsageError` before anything
 * is loaded if one of them is not there.
 */
export async function findInputs(names: readonly string[]): Promise<Input[]> {
  if (names.filter((name) => name === '-').length > 1)
    throw new UsageError('Standard input (-) can be read once only.');
  const found: Input[] = [];
  for (const name of names) found.push(...(await findNamed(name)));
  const seen = new Set<string | null>();
  // A file named twice, or by two patterns, is loaded once.
  return found.filter(({ path }) => !seen.has(path) && seen.add(path));
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
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw new UsageError(`${path} cannot be read: ${error.message}`);
  });
  if (found === null) return null;
  if (found.isDirectory())
    throw new UsageError(`${path} is a folder. Name the files, for example "${path}/*.csv".`);
  // A pipe or a device has no length.
  return { path, name: basename(path), bytes: found.isFile() ? found.size : null };
}

interface ReadOptions {
  readonly format: SourceFormat | undefined;
  readonly signal: AbortSignal;
  /** Given the bytes read so far. */
  readonly onBytes: (bytes: number) => void;
}

/** Takes the input into the store, as an upload would be. */
export async function readInput(
  system: System,
  { path }: Input,
  { format, signal, onBytes }: ReadOptions,
): Promise<ReceivedFile> {
  const source = path === null ? process.stdin : createReadStream(path, { highWaterMark: READ_BYTES });
  const hints = { format, filename: path ?? undefined };
  const store = receivingStore(system);
  try {
    return await receiveLocal(counted(source, onBytes), store, hints, system.config, signal);
  } finally {
    source.destroy();
  }
}

async function* counted(
  source: AsyncIterable<Buffer>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  let total = 0;
  for await (const bytes of source) {
    total += bytes.length;
    onBytes(total);
    yield bytes;
  }
}
