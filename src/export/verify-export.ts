import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault, inputError } from '../domain/errors.ts';
import { type ExportFormat, exportFormats, isExportFormat } from '../domain/export.ts';
import { READ_BYTES } from '../domain/limits.ts';
import { isObject, type JsonObject } from '../mapping/json-object.ts';
import { formatWriters } from './write/formats.ts';
import { manifestName, type SetupFile, setupNames } from './write/manifest.ts';
import { ContentHash, ndjsonText, type RowBlock, type RowText, rowBlocks } from './write/row-blocks.ts';

/** Something that is not as the manifest says. */
export interface Difference {
  /** The file, or null if a dataset differs as a whole. */
  readonly filename: string | null;
  /** In words. */
  readonly problem: string;
}

export interface FileCheck {
  readonly filename: string;
  readonly bytes: number;
  readonly rows: number;
  /** None: the file is as it was written. */
  readonly problems: readonly string[];
}

export interface Verification {
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
  onFile: (check: FileCheck) => void = () => undefined,
): Promise<Verification> {
  const manifest = await readManifest(join(directory, manifestName));
  const differences: Difference[] = await findAdditional(directory, [...manifest.files, ...manifest.setup]);
  for (const file of manifest.setup) differences.push(...(await verifyText(directory, file)));
  const datasets = new Map(manifest.datasets.map((dataset) => [dataset.dataset, new DatasetCheck(dataset)]));
  let bytes = 0;
  let rows = 0;
  for (const file of manifest.files) {
    const check = await verifyFile(directory, file, datasets.get(file.dataset));
    differences.push(...check.problems.map((problem) => ({ filename: file.filename, problem })));
    bytes += check.bytes;
    rows += check.rows;
    onFile(check);
  }
  for (const check of datasets.values()) {
    differences.push(...check.problems().map((problem) => ({ filename: null, problem })));
  }
  return { files: manifest.files.length, rows, bytes, differences };
}

/** @throws InputError as `verifyExport`. */
export function readListedExport(directory: string): Promise<ListedExport> {
  return readManifest(join(directory, manifestName));
}

async function verifyText(directory: string, { filename, bytes, sha256 }: SetupFile): Promise<Difference[]> {
  const path = join(directory, filename);
  const stats = await lstat(path).catch(() => null);
  if (stats === null || !stats.isFile()) return [{ filename, problem: 'is missing' }];
  if (stats.size === bytes && (await hashFile(path)) === sha256) return [];
  return [{ filename, problem: 'is not as it was written' }];
}

async function findAdditional(
  directory: string,
  listed: readonly Pick<ListedFile, 'filename'>[],
): Promise<Difference[]> {
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
): Promise<FileCheck> {
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
    if (rows !== file.rows) problems.push(`has ${rows} rows, not ${file.rows}`);
    return rows;
  } catch (error) {
    dataset?.cannotTell();
    problems.push(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    return 0;
  }
}

export interface ListedFile {
  readonly filename: string;
  readonly dataset: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

interface ListedDataset {
  readonly dataset: string;
  readonly rows: number;
  readonly contentSha256: string | null;
}

export interface ListedExport {
  readonly files: readonly ListedFile[];
  readonly datasets: readonly ListedDataset[];
  /** The definitions in an export of everything. */
  readonly setup: readonly SetupFile[];
}

/** Names that we give, and nothing that leads to another directory. */
const ourNames = new RegExp(`^[a-z]+(?:-\\d{4,})?\\.(${exportFormats.join('|')})(?:\\.gz)?$`);
const digest = /^[0-9a-f]{64}$/;

/** @throws InputError if the file is missing, is no manifest of ours, or names files that cannot be of an export. */
async function readManifest(path: string): Promise<ListedExport> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw Object.assign(inputError('invalid_field', `${path} cannot be read`), { cause });
  });
  const manifest = parse(text, path);
  const files = list(manifest['files'], 'files').map(readFileEntry);
  const names = new Set(files.map(({ filename }) => filename));
  if (names.size < files.length) throw refused('files: the same file is listed twice');
  return {
    files,
    datasets: list(manifest['datasets'], 'datasets').map(readDataset),
    setup: list(manifest['setup'] ?? [], 'setup').map(readSetupEntry),
  };
}

function readSetupEntry(entry: unknown): SetupFile {
  const { filename: name, bytes, sha256 } = object(entry, 'setup');
  const filename = setupNames.find((known) => known === name);
  if (filename === undefined) throw refused(`setup: ${JSON.stringify(name)} is no name of such a file`);
  if (typeof sha256 !== 'string' || !digest.test(sha256)) throw refused(`${filename}: sha256`);
  return { filename, bytes: count(bytes, filename), sha256 };
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

/** Returns how many rows a file has, its header aside. `dataset` is told of them. */
async function readRows(path: string, file: ListedFile, dataset: DatasetCheck | null): Promise<number> {
  const { text, readBack } = formatWriters[formatOf(file)];
  let rows = 0;
  let isFirst = true;
  for await (const block of rowBlocks(readBack(path), text)) {
    const found = isFirst && text.hasHeader ? withoutHeader(block, text, dataset) : block;
    isFirst = false;
    rows += found.ends.length;
    dataset?.rows(found, text);
  }
  return rows;
}

/** Returns the format that the name of a file says. */
export function formatOf({ filename }: Pick<ListedFile, 'filename'>): ExportFormat {
  const name = ourNames.exec(filename)?.[1] ?? '';
  if (!isExportFormat(name)) throw new Fault(`${filename} is no name of an exported file`);
  return name;
}

function withoutHeader({ bytes, ends }: RowBlock, text: RowText, dataset: DatasetCheck | null): RowBlock {
  const [end = 0, ...rest] = ends;
  dataset?.header(bytes.subarray(0, end), text);
  return { bytes: bytes.subarray(end), ends: rest.map((each) => each - end) };
}

/** A dataset as it turns out, over all its files in the order of the manifest. */
class DatasetCheck {
  readonly #listed: ListedDataset;
  #content: ContentHash | null = null;
  #rows = 0;
  #canTell = true;

  constructor(listed: ListedDataset) {
    this.#listed = listed;
  }

  /** Takes the header of a file, the same in all of them. */
  header(header: Buffer, text: RowText): void {
    if (this.#content === null) this.#hash(text)?.addHeader(header);
  }

  rows(block: RowBlock, text: RowText): void {
    this.#rows += block.ends.length;
    this.#hash(text)?.add(block);
  }

  /** A file of it could not be read; that has been said, and the rest follows from it. */
  cannotTell(): void {
    this.#canTell = false;
  }

  problems(): string[] {
    if (!this.#canTell) return [];
    const { dataset, rows, contentSha256 } = this.#listed;
    const problems: string[] = [];
    if (this.#rows !== rows) problems.push(`${dataset}: the files have ${this.#rows} rows, not ${rows}`);
    if (contentSha256 === null) return problems;
    const found = this.#content?.digest() ?? new ContentHash(dataset, ndjsonText).digest();
    if (found !== contentSha256) problems.push(`${dataset}: the content has another content_sha256`);
    return problems;
  }

  #hash(text: RowText): ContentHash | null {
    if (this.#listed.contentSha256 === null) return null;
    this.#content ??= new ContentHash(this.#listed.dataset, text);
    return this.#content;
  }
}
