import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { READ_BYTES } from '../../domain/limits.ts';
import { manifestName } from '../write/manifest.ts';
import { DatasetCheck } from './dataset-check.ts';
import { type ListedFile, readManifest } from './read-manifest.ts';
import { readRows } from './read-rows.ts';

/** Something that is not as the manifest says. */
export interface Difference {
  /** Null: the difference is one of a dataset as a whole. */
  readonly filename: string | null;
  /** In words. */
  readonly problem: string;
}

export interface FileVerdict {
  readonly filename: string;
  readonly bytes: number;
  readonly rows: number;
  /** None: the file is as it was written. */
  readonly problems: readonly string[];
}

export interface Verdict {
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
  readonly differences: readonly Difference[];
}

/**
 * Compares the files of a directory with its manifest.json: length, sha256, rows, content, missing and additional ones.
 * Needs neither service nor database. `onFile` is told of each file of the manifest when it has been looked at.
 * @throws InputError if there is no manifest that can be read.
 */
export async function verifyExport(
  directory: string,
  onFile: (verdict: FileVerdict) => void = () => undefined,
): Promise<Verdict> {
  const manifest = await readManifest(join(directory, manifestName));
  const differences: Difference[] = await findAdditional(directory, manifest.files);
  const datasets = new Map(manifest.datasets.map((dataset) => [dataset.dataset, new DatasetCheck(dataset)]));
  let bytes = 0;
  let rows = 0;
  for (const file of manifest.files) {
    const verdict = await verifyFile(directory, file, datasets.get(file.dataset));
    differences.push(...verdict.problems.map((problem) => ({ filename: file.filename, problem })));
    bytes += verdict.bytes;
    rows += verdict.rows;
    onFile(verdict);
  }
  for (const check of datasets.values()) {
    differences.push(...check.problems().map((problem) => ({ filename: null, problem })));
  }
  return { files: manifest.files.length, rows, bytes, differences };
}

async function findAdditional(directory: string, listed: readonly ListedFile[]): Promise<Difference[]> {
  const known = new Set([manifestName, ...listed.map(({ filename }) => filename)]);
  const found = await readdir(directory);
  return found
    .filter((name) => !known.has(name))
    .sort()
    .map((filename) => ({ filename, problem: 'is not in the manifest' }));
}

async function verifyFile(
  directory: string,
  file: ListedFile,
  dataset: DatasetCheck | undefined,
): Promise<FileVerdict> {
  const { filename } = file;
  const path = join(directory, filename);
  const stats = await lstat(path).catch(() => null);
  if (stats === null || !stats.isFile()) {
    dataset?.cannotTell();
    return { filename, bytes: 0, rows: 0, problems: [stats === null ? 'is missing' : 'is no regular file'] };
  }
  const problems: string[] = [];
  if (dataset === undefined) problems.push(`is of ${file.dataset}, which the manifest does not list`);
  if (stats.size !== file.bytes) problems.push(`has ${stats.size} bytes, not ${file.bytes}`);
  if ((await hashFile(path)) !== file.sha256) problems.push('has another sha256: it was changed or damaged');
  const rows = await countRows(path, file, dataset, problems);
  return { filename, bytes: stats.size, rows, problems };
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  const stream = createReadStream(path, { highWaterMark: READ_BYTES });
  for await (const bytes of stream as AsyncIterable<Buffer>) hash.update(bytes);
  return hash.digest('hex');
}

async function countRows(
  path: string,
  file: ListedFile,
  dataset: DatasetCheck | undefined,
  problems: string[],
): Promise<number> {
  try {
    const rows = await readRows(path, file, dataset ?? null);
    if (rows !== null && rows !== file.rows) problems.push(`has ${rows} rows, not ${file.rows}`);
    return rows ?? file.rows;
  } catch (error) {
    dataset?.cannotTell();
    problems.push(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    return 0;
  }
}
