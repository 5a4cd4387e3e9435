import { readFile } from 'node:fs/promises';
import { inputError } from '../../domain/errors.ts';
import { isObject, type JsonObject } from '../../mapping/json-object.ts';

export interface ListedFile {
  readonly filename: string;
  readonly dataset: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

export interface ListedDataset {
  readonly dataset: string;
  readonly rows: number;
  readonly contentSha256: string | null;
}

export interface ListedExport {
  readonly files: readonly ListedFile[];
  readonly datasets: readonly ListedDataset[];
}

/** Names that we give, and nothing that leads to another directory. */
const ourNames = /^[a-z]+(-\d{4,})?\.(ndjson|csv|parquet)(\.gz)?$/;
const digest = /^[0-9a-f]{64}$/;

/** @throws InputError if the file is missing, is no manifest of ours, or names files that cannot be of an export. */
export async function readManifest(path: string): Promise<ListedExport> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw Object.assign(inputError('invalid_field', `${path} cannot be read`), { cause });
  });
  const manifest = parse(text, path);
  const files = list(manifest['files'], 'files').map(readFileEntry);
  const names = new Set(files.map(({ filename }) => filename));
  if (names.size < files.length) throw refused('files: the same file is listed twice');
  return { files, datasets: list(manifest['datasets'], 'datasets').map(readDataset) };
}

function parse(text: string, path: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch (cause) {
    throw Object.assign(inputError('invalid_json', `${path} is not JSON`), { cause });
  }
  throw refused('it is no object');
}

function readFileEntry(entry: unknown): ListedFile {
  const { filename, dataset, rows, bytes, sha256 } = object(entry, 'files');
  if (typeof filename !== 'string' || !ourNames.test(filename)) {
    throw refused(`files: ${JSON.stringify(filename)} is no name of an exported file`);
  }
  if (typeof dataset !== 'string') throw refused(`${filename}: dataset`);
  if (typeof sha256 !== 'string' || !digest.test(sha256)) throw refused(`${filename}: sha256`);
  return { filename, dataset, rows: count(rows, filename), bytes: count(bytes, filename), sha256 };
}

function readDataset(entry: unknown): ListedDataset {
  const { dataset, rows, content_sha256: content } = object(entry, 'datasets');
  if (typeof dataset !== 'string') throw refused('datasets: dataset');
  if (content !== null && (typeof content !== 'string' || !digest.test(content))) {
    throw refused(`${dataset}: content_sha256`);
  }
  return { dataset, rows: count(rows, dataset), contentSha256: content };
}

function list(value: unknown, name: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw refused(`${name} is no list`);
}

function object(value: unknown, name: string): JsonObject {
  if (isObject(value)) return value;
  throw refused(`${name}: an entry is no object`);
}

function count(value: unknown, where: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw refused(`${where}: ${JSON.stringify(value)} is no count`);
}

function refused(details: string): Error {
  return inputError('invalid_field', 'This is no manifest of an export', details);
}
