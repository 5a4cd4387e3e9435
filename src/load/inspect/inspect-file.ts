/*
 * What a file holds, found out without loading it: its beginning is received as an upload is, and its chunks are read by the loader's
 * own reader, so that what is shown is what would be loaded.
 */
import { type ColumnMap, resolveMap } from '../../domain/column-map.ts';
import type { LoadEntity } from '../../domain/entity.ts';
import { InputError } from '../../domain/errors.ts';
import { SNIFF_BYTES } from '../../domain/limits.ts';
import type { LoadOptions } from '../../domain/load.ts';
import type { Reject } from '../../domain/reject.ts';
import type { ReadAs } from '../../domain/source.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { type ColumnPlan, type EventFilePlan, planFile, requireRecord } from '../../mapping/column-plan.ts';
import type { Rows } from '../../mapping/rows.ts';
import type { LoadSource } from '../../postgres/stores/running-loads.ts';
import { createChunkReader } from '../read-chunk.ts';
import type { ReceivingStore } from '../receive/asides.ts';
import type { ReceiveLimits } from '../receive/intake.ts';
import { type ReceivedFile, type ReceiveHints, receive } from '../receive/receive.ts';
import { ColumnValues, type ValuesSummary } from './column-values.ts';
import { describeColumns, describeKeys, type InspectedColumn } from './describe-columns.ts';
import { proposeMap } from './propose-map.ts';
import { type StoredRecord, storedRecords } from './stored-records.ts';

/** What an inspection looks at: so many bytes of text, and of these so many records; and how many records and rejects it shows. */
export const INSPECTED_BYTES = 8 * 1024 * 1024;
export const INSPECTED_RECORDS = 10_000;
export const SHOWN_RECORDS = 20;

export interface Inspection {
  readonly readAs: ReadAs;
  /** The beginning of the text, as it was decoded: SNIFF_BYTES of it. */
  readonly head: string;
  /** All of the file was looked at. */
  readonly isWhole: boolean;
  /** Records that were looked at. */
  readonly records: number;
  /** Null where no record or column says it. */
  readonly entity: LoadEntity | null;
  readonly columns: readonly InspectedColumn[];
  /** The names of the columns, where a record of the file names them; else null. */
  readonly columnNames: readonly string[] | null;
  /** What `map` may be given as: what was given, and what is proposed. */
  readonly map: ColumnMap;
  /** Why the file could not be loaded with the options that were given. */
  readonly problem: InputError | null;
  readonly refused: {
    readonly count: number;
    readonly byCode: Readonly<Record<string, number>>;
    readonly samples: readonly Reject[];
  };
  /** The first records as they would be stored. */
  readonly rows: readonly InspectedRow[];
}

/** `row`: its position among the records of the file, from 1. */
interface InspectedRow extends Omit<StoredRecord, 'record'> {
  readonly row: number;
}

/**
 * Looks at the beginning of a file: INSPECTED_BYTES of its text, and of these INSPECTED_RECORDS. Leaves nothing in the store.
 * @throws InputError where it cannot be read as a file of records at all; what `receive` throws.
 */
export async function inspectFile(
  store: ReceivingStore,
  source: AsyncIterable<Uint8Array>,
  hints: ReceiveHints,
  options: Options,
  limits: ReceiveLimits,
  signal: AbortSignal,
): Promise<Inspection> {
  const received = await receive(source, store, { ...hints, sampleBytes: INSPECTED_BYTES }, limits, signal);
  try {
    return await look(store, received, options);
  } finally {
    await store.remove(received.ref);
  }
}

interface Options extends Pick<LoadOptions, 'entity' | 'map' | 'preset'> {
  /** The reason that is shown for what `map` says. */
  readonly mapSays?: string;
}

async function look(store: ReceivingStore, received: ReceivedFile, options: Options): Promise<Inspection> {
  const { header, readAs } = received;
  const columns = header?.columns ?? (await keysOf(store, received));
  const hasHeader = readAs.csv?.headerLine !== null;
  const given = resolveMap(options.map, columns, hasHeader);
  const said = { ...options, map: given };
  let chosen = header === null ? asGiven(given) : chooseColumns(header, said);
  let sample = await readSample(store, received, said, chosen);
  // Each record says by its keys what it is: only where none can be stored is it asked whether the keys have other names.
  if (header === null && options.preset === null && sample.rows.length === 0) {
    chosen = chooseKeys(columns, said);
    if (chosen.reasons.size > 0) sample = await readSample(store, received, said, chosen);
  }
  const { map, reasons, plan, problem } = chosen;
  const { records, refused, rows } = sample;
  const { mapSays = 'map says so' } = options;
  const why = { given, mapSays, reasons };
  const described =
    plan === null ? describeKeys(columns, sample, map, why) : describeColumns(plan, columns, sample, why);
  const isWhole = received.isWhole && records === received.totalRows;
  const entity = entityOf(header, said, chosen);
  const columnNames = hasHeader && header !== null ? header.columns : null;
  const shown = { columns: described, columnNames, map, problem, refused, rows };
  return { readAs, head: await headOf(store, received), isWhole, records, entity, ...shown };
}

async function headOf(store: ReceivingStore, { ref, chunks }: ReceivedFile): Promise<string> {
  const bytes = await store.readRange(ref, 0, Math.min(SNIFF_BYTES, chunks.at(-1)?.byteEnd ?? 0));
  // As a part of a stream: a character that is cut at the end is left out.
  return new TextDecoder().decode(bytes, { stream: true });
}

/** Null where the columns do not say it. */
function entityOf(header: CsvHeader | null, { entity }: Options, { plan }: Chosen): LoadEntity | null {
  return header === null ? entity : (plan?.entity ?? null);
}

async function readSample(
  store: ReceivingStore,
  received: ReceivedFile,
  options: Options,
  chosen: Chosen,
): Promise<Sample> {
  const { header, chunks, isWhole } = received;
  const sample = new Sample();
  const entity = entityOf(header, options, chosen);
  if (entity === null) return sample;
  const reader = createChunkReader(sourceOf(received, { ...options, map: chosen.map, entity }), store);
  for (const chunk of chunks) {
    if (sample.records >= INSPECTED_RECORDS) break;
    const rows = await reader.read(chunk);
    // Of a beginning, the last record may be cut.
    const isCut = !isWhole && chunk === chunks.at(-1);
    sample.add(rows, chunk.firstRow, chunk.rowCount - (isCut ? 1 : 0));
  }
  return sample;
}

interface Chosen {
  readonly map: ColumnMap;
  /** Why a column is proposed to be what it is. */
  readonly reasons: ReadonlyMap<string, string>;
  /** Null unless the file is a CSV with an id. */
  readonly plan: ColumnPlan | EventFilePlan | null;
  readonly problem: InputError | null;
}

function asGiven(map: ColumnMap, plan: Chosen['plan'] = null): Chosen {
  return { map, reasons: new Map(), plan, problem: null };
}

/** The plan that a load would follow with the map given; where it names no id, with one that is proposed. */
function chooseColumns(header: CsvHeader, { map, entity }: Options): Chosen {
  try {
    return asGiven(map, planFile(header, map, entity));
  } catch (error) {
    const proposal = propose(error, header.columns, { map, entity });
    return { ...proposal, plan: proposal.reasons.size > 0 ? planOrNull(header, proposal.map, entity) : null };
  }
}

/** The same of records without columns, whose keys are `keys`. */
function chooseKeys(keys: readonly string[], { map, entity }: Options): Chosen {
  try {
    requireRecord({ keys, arrays: [] }, map);
    return asGiven(map);
  } catch (error) {
    return propose(error, keys, { map, entity });
  }
}

/** Of a file that cannot be loaded: why, and where an id is missing, which column may be one. */
function propose(error: unknown, names: readonly string[], { map, entity }: Omit<Options, 'preset'>): Chosen {
  if (!(error instanceof InputError)) throw error;
  const isMissing = error.problems[0].code === 'unrecognised_columns';
  const proposal = isMissing ? proposeMap(names, map, entity) : null;
  return { ...asGiven(map), ...proposal, problem: error };
}

function planOrNull(header: CsvHeader, map: ColumnMap, entity: LoadEntity): Chosen['plan'] {
  try {
    return planFile(header, map, entity);
  } catch (error) {
    if (error instanceof InputError) return null;
    throw error;
  }
}

/** The keys of the first records of a file that has no columns. */
async function keysOf(store: ReceivingStore, { ref, chunks }: ReceivedFile): Promise<string[]> {
  const [chunk] = chunks;
  if (chunk === undefined) return [];
  const end = Math.min(chunk.byteEnd, chunk.byteStart + SNIFF_BYTES);
  const lines = (await store.readRange(ref, chunk.byteStart, end))
    .toString('utf8')
    .split('\n', SHOWN_RECORDS);
  return [...new Set(lines.flatMap(keysOfLine))];
}

function keysOfLine(line: string): string[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
  } catch {
    return [];
  }
}

/** As if the file were loaded; of no environment. */
function sourceOf(received: ReceivedFile, { map, entity, preset }: Options): LoadSource {
  return {
    loadId: 0,
    jobId: 'inspection',
    environmentId: 0,
    entity,
    acceptedAt: `${new Date().toISOString().slice(0, -1)}000Z`,
    fileRef: received.ref,
    fileFormat: received.format,
    header: received.header,
    columnMap: map,
    preset,
    pass: 'dry_run',
    dryRun: true,
    chunkCount: received.chunks.length,
    maxErrors: null,
    place: null,
    recordKey: '',
  };
}

/** What the records that were looked at come to. */
class Sample {
  records = 0;
  readonly rows: InspectedRow[] = [];
  readonly #values = new Map<string, ColumnValues>();
  readonly #byCode: Record<string, number> = {};
  readonly #rejects: Reject[] = [];
  #refused = 0;

  /** The first `count` records of a chunk. */
  add(rows: Rows, firstRow: number, count: number): void {
    const taken = Math.min(count, INSPECTED_RECORDS - this.records);
    for (const { record, ...stored } of storedRecords(rows)) {
      if (record >= taken) continue;
      if (this.rows.length < SHOWN_RECORDS) this.rows.push({ row: firstRow + record, ...stored });
      for (const [name, value] of Object.entries(stored.fields)) this.#add(name, value);
      for (const [name, value] of Object.entries(stored.metadata)) this.#add(`metadata.${name}`, value);
    }
    for (const reject of rows.rejects) {
      if (reject.row - firstRow >= taken) continue;
      this.#refused++;
      this.#byCode[reject.code] = (this.#byCode[reject.code] ?? 0) + 1;
      if (this.#rejects.length < SHOWN_RECORDS) this.#rejects.push(reject);
    }
    this.records += taken;
  }

  get refused(): Inspection['refused'] {
    return { count: this.#refused, byCode: this.#byCode, samples: this.#rejects };
  }

  /** What records have: fields, and properties as `metadata.<name>`. */
  get names(): readonly string[] {
    return [...this.#values.keys()];
  }

  summaryOf(name: string): ValuesSummary {
    return (this.#values.get(name) ?? new ColumnValues()).summary();
  }

  #add(name: string, value: unknown): void {
    const values = this.#values.get(name) ?? new ColumnValues();
    this.#values.set(name, values);
    values.add(value);
  }
}
