import type { Config } from '../../base/config.ts';
import { inputError } from '../../base/errors.ts';
import { CHUNK_BYTES, CHUNK_RECORDS, KiB, MAX_RECORD_BYTES } from '../../base/limits.ts';
import { turn } from '../../base/yielding.ts';
import type { StoredFormat } from '../../domain/load.ts';
import { requireFitting } from '../../domain/option-table.ts';
import type { CsvReadAs, ReadAs } from '../../domain/source.ts';
import type { FileWriter } from '../../files/file-store.ts';
import { type CsvForm, isPlain } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { type CsvBeginning, type Sniffed, sniffCsv } from '../../formats/csv-sniff.ts';
import { MAX_READ_AS_COLUMNS } from '../limits.ts';
import { type Decoded, decode, storedText } from './decode.ts';
import { Intake, type ReceiveClock, type ReceiveLimits } from './intake.ts';
import type { ReceivedFile } from './received-file.ts';
import { RecordIndex } from './record-index.ts';
import { noRecord, rewriteCsv } from './rewrite.ts';
import {
  type Archived,
  type ConvertWhole,
  convertFile,
  type ReceivingStore,
  TemporaryCopies,
  type UnpackHints,
  unpack,
} from './unpack.ts';

/**
 * Detecting a dialect here, and not in a sandbox, takes several tenths of a second for wide files.
 */
const SNIFFED_HERE_BYTES = 64 * KiB;

export interface ReceiveHints extends UnpackHints {
  /** Default: CHUNK_BYTES. */
  readonly chunkBytes?: number | undefined;
  /** Approximate number of bytes of text to receive. Default: the whole file. */
  readonly sampleBytes?: number | undefined;
}

/**
 * Receives a file in one pass, as CSV or NDJSON in chunks. Memory use does not grow with the file.
 * If an error is thrown, no file remains. The caller must close the source. An HTTP route must send
 * its response before it closes the source.
 * @throws InputError for the file, TransientError for the store, errors from the source, or the
 * signal's reason
 */
export async function receive(
  source: AsyncIterable<Uint8Array>,
  store: ReceivingStore,
  hints: ReceiveHints,
  limits: ReceiveLimits,
  signal: AbortSignal,
  clock: ReceiveClock = performance,
): Promise<ReceivedFile> {
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  const intake = new Intake(source, limits, ended, clock);
  const { maxInflatedBytes } = limits;
  const temporaryCopies = new TemporaryCopies(store);
  const convert: ConvertWhole = (format, { bytes, read }, sheet) => {
    const sentBytes = (hints.sent ?? intake).receivedBytes;
    const conversion = { format, bytes, sheet, sentBytes, maxInflatedBytes };
    return (store.convert ?? convertFile)(conversion, (stretch) => read(...stretch), ended);
  };
  const writer = await store.create();
  try {
    const unpacked = await unpack(intake, hints, maxInflatedBytes, temporaryCopies, convert);
    const decoded = await decode(unpacked);
    requireFitting(hints.source ?? {}, decoded.format);
    const index = createIndex(
      decoded,
      hints,
      store.sniff === undefined ? Number.POSITIVE_INFINITY : SNIFFED_HERE_BYTES,
    );
    const sniff = (sample: CsvBeginning) => store.sniff?.(sample, ended) ?? sniffCsv(sample);
    const notes: string[] = [];
    const text = storedText(decoded, {
      temporaryCopies,
      convert,
      hints,
      sent: intake,
      maxInflatedBytes,
      notes,
    });
    const { storedBytes, isWhole } = await copyAndIndex(
      text,
      writer,
      { index, sniff },
      signal,
      hints.sampleBytes,
    );
    requireRecords(decoded, index, hints);
    const { header, form, rows: totalRows, chunks } = index;
    signal.throwIfAborted();
    const ref = await writer.commit();
    const received: ReceivedFile = {
      ref,
      format: storedFormat(decoded),
      header,
      object: decoded.object,
      readAs: describeReading(decoded, unpacked.archived, index, notes),
      receivedBytes: intake.receivedBytes,
      storedBytes,
      sha256: intake.sha256(),
      totalRows,
      isWhole,
      chunks,
      chunkBytes: hints.chunkBytes ?? CHUNK_BYTES,
      head: null,
    };
    return form === null || isPlain(form) ? received : await rewriteCsv(store, received, form, ended);
  } catch (error) {
    // If the file cannot be removed now, the sweep removes it later. The caller gets the first
    // error.
    await writer.discard().catch(() => undefined);
    throw error;
  } finally {
    stop.abort();
    await temporaryCopies.removeAll().catch(() => undefined);
  }
}

function describeReading(
  { format, encoding, notes }: Decoded,
  archived: Archived | null,
  { header, form, headerLine, notes: indexed }: RecordIndex,
  conversionNotes: readonly string[],
): ReadAs {
  const csv = header === null || form === null ? null : describeCsv(header, form, headerLine);
  const { sheet = null, sheets = null, member = null, notes: unpacked = [] } = archived ?? {};
  return {
    format,
    encoding,
    csv,
    sheet,
    sheets,
    member,
    notes: [...unpacked, ...notes, ...conversionNotes, ...indexed],
  };
}

function describeCsv(header: CsvHeader, form: CsvForm, headerLine: number | null): CsvReadAs {
  const columns = header.columns.slice(0, MAX_READ_AS_COLUMNS);
  return {
    ...form.dialect,
    ragged: form.ragged,
    headerLine,
    columns,
    columnCount: header.columns.length,
  };
}

function storedFormat(decoded: Decoded): StoredFormat {
  return decoded.format === 'csv' || decoded.format === 'xlsx' ? 'csv' : 'ndjson';
}

/** This dialect need not be detected, because sluice itself converts worksheets to CSV. */
export const sheetDialect = { delimiter: ',', quote: '"', escape: '"', comment: '' } as const;

function createIndex(decoded: Decoded, hints: ReceiveHints, sniffedBytes: number): RecordIndex {
  const { layout, bomBytes } = decoded;
  const skipBytes = layout === null || layout.kind === 'lines' ? bomBytes : 0;
  const source = { ...hints.source, ...(decoded.format === 'xlsx' && sheetDialect) };
  const csvHints = { source, map: hints.map ?? {} };
  return new RecordIndex(
    storedFormat(decoded),
    hints.chunkBytes ?? CHUNK_BYTES,
    skipBytes,
    MAX_RECORD_BYTES,
    csvHints,
    CHUNK_RECORDS,
    sniffedBytes,
  );
}

interface Indexing {
  readonly index: RecordIndex;
  readonly sniff: (sample: CsvBeginning) => Sniffed | Promise<Sniffed>;
}

async function copyAndIndex(
  text: AsyncIterable<Buffer>,
  writer: FileWriter,
  { index, sniff }: Indexing,
  signal: AbortSignal,
  sampleBytes = Number.POSITIVE_INFINITY,
): Promise<{ readonly storedBytes: number; readonly isWhole: boolean }> {
  let storedBytes = 0;
  let isWhole = true;
  let writing = Promise.resolve();
  try {
    for await (const bytes of text) {
      signal.throwIfAborted();
      await writing;
      writing = writer.write(bytes);
      // This `catch` only prevents an unhandled rejection. The next `await writing` throws the
      // error.
      writing.catch(() => undefined);
      for (const _ of index.add(bytes)) await turn();
      if (index.sample !== null) index.learn(await sniff(index.sample));
      storedBytes += bytes.length;
      if (storedBytes >= sampleBytes) {
        isWhole = false;
        break;
      }
    }
    for (const _ of index.end()) await turn();
    if (index.sample !== null) {
      index.learn(await sniff(index.sample));
      for (const _ of index.end()) await turn();
    }
  } finally {
    await writing;
  }
  return { storedBytes, isWhole };
}

function requireRecords(decoded: Decoded, { rows, header }: RecordIndex, hints: ReceiveHints): void {
  if (decoded.object?.keys.length === 0) {
    const message = 'The object holds no record; send a record, an array of them, or {"users": […]}';
    throw inputError('empty_file', message);
  }
  if (rows > 0) return;
  if (header !== null) throw noRecord(header);
  if (decoded.format !== 'json') throw inputError('empty_file', 'The file is empty');
  throw inputError('empty_file', 'The array has no element', hints.envelope ?? '');
}

/** The longest delay that a timer can have, because a local pipe or disk may be slow. */
const noStallMs = 2 ** 31 - 1;

/** Like `receive`, with the same errors, but without speed limits. */
export function receiveLocal(
  source: AsyncIterable<Uint8Array>,
  store: ReceivingStore,
  hints: ReceiveHints,
  config: Pick<Config, 'maxUploadBytes' | 'maxInflatedBytes' | 'chunkBytes'>,
  signal: AbortSignal,
): Promise<ReceivedFile> {
  const { chunkBytes } = config;
  return receive(source, store, { ...hints, chunkBytes }, localLimits(config), signal);
}

export function localLimits({
  maxUploadBytes,
  maxInflatedBytes,
}: Pick<Config, 'maxUploadBytes' | 'maxInflatedBytes'>): ReceiveLimits {
  return { maxUploadBytes, maxInflatedBytes, minBytesPerSecond: 0, stallMs: noStallMs };
}
