/**
 * npm run bench:pollock [-- --libraries DIR] [--lost]
 *
 * Reads the files of the Pollock benchmark with our own reader and with csv-parse, and also with
 * Papaparse and DuckDB if these are installed in the folder DIR. Prints the scores, and for each
 * program the number of loaded rows that the file does not contain. `--lost` lists the files for
 * which our reader gets less than 10 points.
 *
 * If a file has no records, a program gets full marks for refusing it. Our reader is given the id
 * column: its name (with all header lines joined) if the file has a header, else its position. The
 * other programs are given the dialect of the file.
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

interface Loaded {
  readonly header: Row;
  readonly rows: readonly Row[];
}

/** Returns `null` if the program refuses the file. */
type Read = (file: PollutedFile, path: string) => Promise<Loaded | null>;

const limits = { maxUploadBytes: 1e9, maxInflatedBytes: 1e9, minBytesPerSecond: 0, stallMs: 20_000 };

/** Rows that our reader would write to the database. */
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
      const records = await reader.read(chunk);
      for (const { fields, metadata } of storedRecords(records, chunk.rowCount)) {
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
    const dialect = `delim=${text(delimiter)}, quote=${text(quote)}, escape=${text(mark)}, header=${header.length > 0}`;
    const lax = 'all_varchar=true, null_padding=true, strict_mode=false, ignore_errors=true, parallel=false';
    try {
      const result = await connection.runAndReadAll(
        `select * from read_csv(${text(path)}, ${dialect}, ${lax})`,
      );
      const rows = result.getRows().map((row) => row.map((cell) => String(cell ?? '')));
      return { header: header.length === 0 ? [] : result.columnNames(), rows };
    } catch {
      return null;
    }
  };
}

/** Number of items that both lists contain. An item that occurs twice in both counts twice. */
function common(one: readonly string[], other: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const item of one) counts.set(item, (counts.get(item) ?? 0) + 1);
  return other.filter((item) => {
    const remaining = counts.get(item) ?? 0;
    counts.set(item, remaining - 1);
    return remaining > 0;
  }).length;
}

/** Sum of precision, recall and their harmonic mean: at most 3. */
function agreement(expected: readonly string[], actual: readonly string[]): number {
  if (expected.length === 0) return 3;
  const both = common(expected, actual);
  if (both === 0) return 0;
  const precision = both / actual.length;
  const recall = both / expected.length;
  return precision + recall + (2 * precision * recall) / (precision + recall);
}

const rowText = (row: Row): string => JSON.stringify(row.map((cell) => cell.trim()));

/** A score from 0 to 10, and the loaded rows that the file does not contain. */
function judge({ header, rows }: PollutedFile, loaded: Loaded | null): { score: number; surplus: number } {
  if (loaded === null) return { score: rows.length === 0 ? 10 : 0, surplus: 0 };
  const trimmed = (cells: readonly string[]) => cells.map((cell) => cell.trim());
  const expected = rows.map(rowText);
  const actual = loaded.rows.map(rowText);
  const score =
    1 +
    agreement(trimmed(header), trimmed(loaded.header)) +
    agreement(expected, actual) +
    agreement(trimmed(rows.flat()), trimmed(loaded.rows.flat()));
  return { score, surplus: actual.length - common(expected, actual) };
}

async function measure(name: string, read: Read, folder: string): Promise<void> {
  let files = 0;
  let simple = 0;
  let weights = 0;
  let weighted = 0;
  let surplus = 0;
  let surplusFiles = 0;
  for (const file of pollutedFiles()) {
    const path = join(folder, 'file.csv');
    await writeFile(path, file.text);
    const result = judge(file, await read(file, path));
    files++;
    simple += result.score;
    weights += file.weight;
    weighted += file.weight * result.score;
    surplus += result.surplus;
    if (result.surplus > 0) surplusFiles++;
    if (flags.lost && name === 'sluice' && (result.score < 9.9 || result.surplus > 0))
      process.stdout.write(`  ${file.name}: ${result.score.toFixed(2)}, ${result.surplus} surplus rows\n`);
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
