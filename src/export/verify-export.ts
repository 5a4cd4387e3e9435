import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Fault, inputError } from '../domain/errors.ts';
import { type ExportFormat, isExportFormat } from '../domain/export.ts';
import { READ_BYTES } from '../domain/limits.ts';
import { compileSchema } from '../validation.ts';
import { exportedFileName, type Manifest, manifest, manifestName } from './write/manifest.ts';

/** Something that is not as the manifest says. */
export interface Difference {
  readonly filename: string;
  /** In words. */
  readonly problem: string;
}

export interface Verification {
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
  readonly differences: readonly Difference[];
}

/**
 * Compares the files of a directory with its manifest.json: length, sha256, missing and additional ones. Needs neither service nor
 * database. Rows are those of the manifest: a file with its sha256 has the rows that were counted when it was written.
 * @throws InputError if there is no manifest that can be read.
 */
export async function verifyExport(directory: string): Promise<Verification> {
  const { files, setup = [] } = await readManifest(directory);
  const listed = [...files, ...setup];
  const known = new Set([manifestName, ...listed.map(({ filename }) => filename)]);
  const differences: Difference[] = (await readdir(directory))
    .filter((name) => !known.has(name))
    .sort()
    .map((filename) => ({ filename, problem: 'is not in the manifest' }));
  for (const file of listed) {
    const problem = await findProblem(join(directory, file.filename), file);
    if (problem !== null) differences.push({ filename: file.filename, problem });
  }
  return {
    files: files.length,
    rows: files.reduce((sum, { rows }) => sum + rows, 0),
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    differences,
  };
}

async function findProblem(
  path: string,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
): Promise<string | null> {
  const stats = await lstat(path).catch(() => null);
  if (stats === null) return 'is missing';
  if (!stats.isFile()) return 'is no regular file';
  if (stats.size !== bytes) return `has ${stats.size} bytes, not ${bytes}`;
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: READ_BYTES }), hash);
  return hash.digest('hex') === sha256 ? null : 'has another sha256: it was changed or damaged';
}

const findWrong = compileSchema(manifest);

/** @throws InputError if the file is missing, is no manifest of ours, or names files that cannot be of an export. */
export async function readManifest(directory: string): Promise<Manifest> {
  const path = join(directory, manifestName);
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw Object.assign(inputError('invalid_field', `${path} cannot be read`), { cause });
  });
  const value = parse(text, path);
  const [wrong] = findWrong(value);
  if (wrong !== undefined) throw refused(`${wrong.details}: ${wrong.message}`);
  const read = value as Manifest;
  if (new Set(read.files.map(({ filename }) => filename)).size === read.files.length) return read;
  throw refused('files: the same file is listed twice');
}

function parse(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw Object.assign(inputError('invalid_json', `${path} is not JSON`), { cause });
  }
}

function refused(details: string): Error {
  return inputError('invalid_field', 'This is no manifest of an export', details);
}

/** Returns the format that the name of a file says. */
export function formatOf({ filename }: Pick<Manifest['files'][number], 'filename'>): ExportFormat {
  const name = exportedFileName.exec(filename)?.[1] ?? '';
  if (!isExportFormat(name)) throw new Fault(`${filename} is no name of an exported file`);
  return name;
}
