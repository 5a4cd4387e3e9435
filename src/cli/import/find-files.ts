import { stat } from 'node:fs/promises';
import { expandPattern, isPattern } from '../../files/expand-pattern.ts';
import { UsageError } from '../exit-codes.ts';

/** What to load from: a file, or standard input. */
export interface Input {
  /** Path, or null for standard input. */
  readonly path: string | null;
  /** Length in bytes; null where it is not known before the end. */
  readonly bytes: number | null;
}

/**
 * The inputs that the arguments mean, in their order; a pattern's files by name. Throws `UsageError` before anything
 * is loaded if one of them is not there.
 */
export async function findFiles(names: readonly string[]): Promise<Input[]> {
  if (names.filter((name) => name === '-').length > 1)
    throw new UsageError('Standard input (-) can be read once only.');
  const found: Input[] = [];
  for (const name of names) found.push(...(await findInputs(name)));
  const seen = new Set<string | null>();
  // A file named twice, or by two patterns, is loaded once.
  return found.filter(({ path }) => !seen.has(path) && seen.add(path));
}

async function findInputs(name: string): Promise<Input[]> {
  if (name === '-') return [{ path: null, bytes: null }];
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
  return { path, bytes: found.isFile() ? found.size : null };
}
