/**
 * npm run bench:pollock [-- --libraries DIR] [--lost]
 *
 * Reads the files of the Pollock benchmark with our own reader and with csv-parse; of a folder where they are installed, with Papaparse
 * and DuckDB too. Prints the scores, and how many rows each stores that the file does not have. `--lost` lists our files below 10
 * points. Conventions: a file without records that is refused counts as read; our reader is told the id column, by the name that the
 * header has once its records are joined, and by its position where there is no header; the others are told how the file is written.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parse } from 'csv-parse/sync';
import { InputError } from '../src/base/errors.ts';
import { storedRecords } from '../src/capabilities/inspection/values.ts';
import type { FileStore } from '../src/files/file-store.ts';
import { createFileSystemStore } from '../src/files/file-system.ts';
import { createChunkReader } from '../src/load/read-chunk.ts';
import { receive } from '../src/load/receive/receive.ts';
import { idColumn, type PollutedFile, pollutedFiles, type Row } from './pollock-files.ts';

const { values: flags } = parseArgs({
  options: { libraries: { type: 'string' }, lost: { type: 'boolean', default: false } },
});

/** The table that a program made of a file. */
interface Loaded {
  readonly header: Row;
  readonly rows: readonly Row[];
}

/** Returns `null` if it refuses the file. */
type Read = (file: PollutedFile, path: string) => Promise<Loaded | null>;

const limits = { maxUploadBytes: 1e9, maxInflatedBytes: 1e9, minBytesPerSecond: 0, stallMs: 20_000 };

/** Our own reader, as far as the rows that would be written. */
function readOurs(store: FileStore): Read {
  return async (file) => {
    const name = file.header[idColumn] ?? String(idColumn + 1);
    const bare = name.replaceAll('"', '');
    for (const id of new Set([name, bare])) {
      const loaded = await load(store, file, { [id]: 'user_id' });
      if (loaded !== null) return loaded;
    }
    return null;
  };
}

async function load(
  store: FileStore,
  { text }: PollutedFile,
  map: Record<string, string>,
): Promise<Loaded | null> {
  const { signal } = new AbortController();
  async function* source() {
    yield Buffer.from(text);
  }
  try {
    const received = await receive(source(), store, { map, format: 'csv' }, limits, signal);
    const { header, ref, chunks } = received;
    if (header === null) return null;
    const isNumbered = received.readAs.csv?.headerLine === null;
    const columnMap = isNumbered ? { [`column_${idColumn + 1}`]: 'user_id' } : map;
    const reader = createChunkReader(
      {
        jobId: 'pollock',
        environmentId: 0,
        entity: 'users',
        acceptedAt: new Date().toISOString(),
        fileRef: ref,
        fileFormat: received.format,
        header,
        columnMap,
        preset: null,
        recordKey: '',
      },
      store,
      null,
    );
    const rows: Row[] = [];
    for (const chunk of chunks) {
      const read = await reader.read(chunk);
      for (const { fields, metadata } of storedRecords(read, chunk.rowCount)) {
        const valueAt = (name: string) =>
          columnMap[name] === 'user_id' ? fields['user_id'] : metadata[name];
        rows.push(header.columns.map((name) => String(valueAt(name) ?? '')));
      }
    }
    await store.remove(ref);
    return { header: isNumbered ? [] : header.columns, rows };
  } catch (error) {
    if (error instanceof InputError) return null;
    throw error;
  }
}

const readCsvParse: Read = async ({ text, written, header }) => {
  try {
    const { delimiter, quote, escape: mark, end } = written;
    const options = { delimiter, quote, escape: mark || null, record_delimiter: end };
    return split(parse(text, { ...options, relax_column_count: true, relax_quotes: true }), header);
  } catch {
    return null;
  }
};

/** The first row is the header, if there is one. */
function split(rows: readonly Row[], header: Row): Loaded {
  return header.length === 0 ? { header: [], rows } : { header: rows[0] ?? [], rows: rows.slice(1) };
}

interface Papaparse {
  parse(text: string, options: object): { readonly data: string[][] };
}
interface DuckDb {
  readonly DuckDBInstance: {
    create(): Promise<{
      connect(): Promise<{
        runAndReadAll(sql: string): Promise<{ columnNames(): string[]; getRows(): unknown[][] }>;
      }>;
    }>;
  };
}

function readPapaparse(papaparse: Papaparse): Read {
  return async ({ text, written, header }) => {
    const { delimiter, quote, escape: mark, end } = written;
    const options = {
      delimiter,
      quoteChar: quote,
      escapeChar: mark || '\0',
      newline: end,
      skipEmptyLines: true,
    };
    return split(papaparse.parse(text, options).data, header);
  };
}

async function readDuckDb({ DuckDBInstance }: DuckDb): Promise<Read> {
  const connection = await (await DuckDBInstance.create()).connect();
  return async ({ written, header }, path) => {
    const text = (value: string) => `'${value.replaceAll("'", "''")}'`;
    const { delimiter, quote, escape: mark } = written;
    const said = `delim=${text(delimiter)}, quote=${text(quote)}, escape=${text(mark)}, header=${header.length > 0}`;
    const lax = 'all_varchar=true, null_padding=true, strict_mode=false, ignore_errors=true, parallel=false';
    try {
      const found = await connection.runAndReadAll(`select * from read_csv(${text(path)}, ${said}, ${lax})`);
      const rows = found.getRows().map((row) => row.map((cell) => String(cell ?? '')));
      return { header: header.length === 0 ? [] : found.columnNames(), rows };
    } catch {
      return null;
    }
  };
}

/** Counts the items of one that are in the other, each as often as it is there. */
function common(one: readonly string[], other: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const item of one) counts.set(item, (counts.get(item) ?? 0) + 1);
  return other.filter((item) => {
    const left = counts.get(item) ?? 0;
    counts.set(item, left - 1);
    return left > 0;
  }).length;
}

/** Precision, recall and their harmonic mean, added up: at most 3. */
function agreement(wanted: readonly string[], found: readonly string[]): number {
  if (wanted.length === 0) return 3;
  const both = common(wanted, found);
  if (both === 0) return 0;
  const precision = both / found.length;
  const recall = both / wanted.length;
  return precision + recall + (2 * precision * recall) / (precision + recall);
}

const rowText = (row: Row): string => JSON.stringify(row.map((cell) => cell.trim()));

/** From 0 to 10, and the rows that the file does not have. */
function judge({ header, rows }: PollutedFile, loaded: Loaded | null): { score: number; surplus: number } {
  if (loaded === null) return { score: rows.length === 0 ? 10 : 0, surplus: 0 };
  const trimmed = (cells: readonly string[]) => cells.map((cell) => cell.trim());
  const [wanted, found] = [rows.map(rowText), loaded.rows.map(rowText)];
  const score =
    1 +
    agreement(trimmed(header), trimmed(loaded.header)) +
    agreement(wanted, found) +
    agreement(trimmed(rows.flat()), trimmed(loaded.rows.flat()));
  return { score, surplus: found.length - common(wanted, found) };
}

async function measure(name: string, read: Read, folder: string): Promise<void> {
  let [files, simple, weights, weighted, surplus, surplusFiles] = [0, 0, 0, 0, 0, 0];
  for (const file of pollutedFiles()) {
    const path = join(folder, 'file.csv');
    await writeFile(path, file.text);
    const found = judge(file, await read(file, path));
    files++;
    simple += found.score;
    weights += file.weight;
    weighted += file.weight * found.score;
    surplus += found.surplus;
    if (found.surplus > 0) surplusFiles++;
    if (flags.lost && name === 'sluice' && (found.score < 9.9 || found.surplus > 0))
      process.stdout.write(`  ${file.name}: ${found.score.toFixed(2)}, ${found.surplus} surplus rows\n`);
  }
  const scores = [simple / files, weighted / weights].map((score) => score.toFixed(3)).join('  ');
  process.stdout.write(
    `${name.padEnd(12)}${scores}  ${surplus} surplus rows in ${surplusFiles} of ${files} files\n`,
  );
}

const folder = await mkdtemp(join(tmpdir(), 'pollock-'));
try {
  await measure('sluice', readOurs(createFileSystemStore(join(folder, 'store'))), folder);
  await measure('csv-parse', readCsvParse, folder);
  if (flags.libraries !== undefined) {
    const load = createRequire(join(flags.libraries, 'package.json'));
    await measure('Papaparse', readPapaparse(load('papaparse') as Papaparse), folder);
    await measure('DuckDB', await readDuckDb(load('@duckdb/node-api') as DuckDb), folder);
  }
} finally {
  await rm(folder, { recursive: true });
}
