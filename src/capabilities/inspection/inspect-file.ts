/*
 * Inspects the beginning of a file with the same reader as loads, so that the result shows what a
 * load would do.
 */

import type { InputError } from '../../base/errors.ts';
import { SHOWN_RECORDS, SNIFF_BYTES } from '../../base/limits.ts';
import { type ColumnMap, resolveMap } from '../../domain/column-map.ts';
import type { LoadEntity } from '../../domain/entity.ts';
import type { LoadOptions } from '../../domain/load.ts';
import type { ReadAs, SourceOptions } from '../../domain/source.ts';
import { type CsvHeader, cellTypeOf } from '../../formats/csv-header.ts';
import { findForeign, readBeginning } from '../../load/foreign-file.ts';
import type { Rows } from '../../load/map/rows.ts';
import { createChunkReader, type ReadSource } from '../../load/read-chunk.ts';
import type { ReceiveLimits } from '../../load/receive/intake.ts';
import { type ReceiveHints, receive } from '../../load/receive/receive.ts';
import type { ReceivedFile, RewriteSeam } from '../../load/receive/received-file.ts';
import { requireRewriter, rewriteFile } from '../../load/receive/rewrite.ts';
import type { ReceivingStore } from '../../load/receive/unpack.ts';
import { renderReadAs, renderReject } from '../../load/render-load.ts';
import { isPersonal, openSample, type RulesDocument } from '../rules/rules.ts';
import type { InspectedColumn, Inspection as Shown } from './api.ts';
import {
  type Chosen,
  choose,
  chooseForeign,
  describeColumns,
  describeKeys,
  describeUnread,
  type InspectOptions,
  lacksId,
  proposeByValues,
  withoutProposal,
  withProposal,
} from './choose.ts';
import { type DescribedColumn, NamedValues, readValues, recordsWithin, storedRecords } from './values.ts';

/** Maximum number of decoded bytes that are inspected. */
export const INSPECTED_BYTES = 8 * 1024 * 1024;

/** Members of the response that depend only on the file's content. */
type FileContent = Omit<
  Shown,
  ('upload_id' | 'expires_at' | 'filename' | 'file_size' | 'sha256') | ('read_as' | 'problem')
>;

export interface Inspection extends FileContent {
  readonly readAs: ReadAs;
  /** `null` if the file can be loaded with the caller's options. */
  readonly problem: InputError | null;
}

/** Members that the sandbox returns in addition to the JSON that it has rendered. */
export type InspectionBase = Pick<Inspection, 'column_names' | 'problem'>;

/**
 * Inspects at most `recordsWithin` records of the first INSPECTED_BYTES. Leaves nothing in the
 * store.
 * @throws InputError if the file cannot be read as records, and the errors of `receive`
 */
export async function inspectFile<Result>(
  store: ReceivingStore,
  source: AsyncIterable<Uint8Array>,
  hints: ReceiveHints,
  options: InspectorOptions,
  limits: ReceiveLimits,
  signal: AbortSignal,
  inspect: Inspector<Result>,
): Promise<Result> {
  const received = await receive(source, store, { ...hints, sampleBytes: INSPECTED_BYTES }, limits, signal);
  try {
    return await inspect(store, received, options, signal);
  } finally {
    await store.remove(received.ref);
  }
}

export interface InspectorOptions extends Pick<LoadOptions, 'entity' | 'map' | 'preset'> {
  readonly source?: SourceOptions;
  /** Default: no rules. */
  readonly rules?: RulesDocument | null;
}

type BeginningStore = Pick<ReceivingStore, 'readRange'>;

export type Inspector<Result> = (
  store: BeginningStore,
  received: ReceivedFile,
  options: InspectorOptions,
  signal: AbortSignal,
) => Promise<Result>;

export const inspectorWith =
  (rewriter: RewriteSeam | null): Inspector<Inspection> =>
  (store, received, options) =>
    inspectReceived(store, received, options, rewriter);

export async function inspectReceived(
  store: BeginningStore,
  received: ReceivedFile,
  options: InspectorOptions,
  rewriter: RewriteSeam | null,
): Promise<Inspection> {
  const { header, readAs } = received;
  const beginning = await readBeginning(store, received);
  const columns = beginning.names;
  const hasHeader = readAs.csv?.headerLine !== null;
  const columnMap = resolveMap(options.map, columns, hasHeader);
  const fileOptions = { ...options, map: columnMap, rewriter };
  const max = recordsWithin(columns.length, SHOWN_RECORDS);
  const foreign = findForeign(beginning, header !== null, fileOptions, rewriter?.recognise ?? null);
  const isRefused = foreign !== null && (options.preset !== null || options.entity === 'auto');
  let chosen = isRefused ? chooseForeign(fileOptions, foreign, columns) : withoutProposal(fileOptions);
  const isPlanned = header !== null && chosen.preset === null && !isRefused;
  let values = header === null ? new NamedValues() : await readValues(store, received, max);
  if (isPlanned) chosen = choose(header, columns, fileOptions, foreign !== null, values);
  let sample = await readSample(store, received, fileOptions, chosen, max);
  // The keys of a JSON record determine how the record is read. An id is proposed only if no record
  // can be stored.
  const isUnread = header === null && chosen.preset === null && sample.rows.length === 0;
  if (isUnread) values = await readValues(store, received, max);
  if (isUnread && !isRefused) chosen = choose(null, columns, fileOptions, foreign !== null, values);
  if (lacksId(chosen))
    chosen = withProposal(chosen, proposeByValues(columns, values, fileOptions), header, fileOptions);
  if (chosen.reasons.size > 0 && sample.rows.length === 0)
    sample = await readSample(store, received, fileOptions, chosen, max);
  const { map, preset, problem } = chosen;
  const { records, rows, findings } = sample;
  const isHidden = isPersonal(options.rules ?? {});
  if (isHidden) values.hide();
  const described = describe(header, columns, sample, values, chosen, columnMap);
  return {
    readAs,
    head: isHidden ? '' : await headOf(store, received),
    whole_file: received.isWhole && records === received.totalRows,
    records,
    entity: entityOf(header, fileOptions, chosen),
    columns: complete(described, header, values),
    column_names: hasHeader && header !== null ? [...header.columns] : null,
    map: { ...map },
    preset,
    problem,
    rejects: isHidden ? withoutRecords(sample.rejects) : sample.rejects,
    rows,
    findings,
  };
}

/** Refused records may contain personal data. */
function withoutRecords({ items, ...rejects }: FileContent['rejects']): FileContent['rejects'] {
  const bare = { raw: '', raw_base64: null };
  return { ...rejects, items: items.map((item) => ({ ...item, message: item.error_code, ...bare })) };
}

function complete(
  columns: readonly DescribedColumn[],
  header: CsvHeader | null,
  cells: NamedValues,
): InspectedColumn[] {
  return columns.map((column) => ({
    ...column,
    cell_type: (header && cellTypeOf(header, column.name)) ?? null,
    fits: header === null ? [] : cells.typesOf(column.name),
  }));
}

function describe(
  header: CsvHeader | null,
  columns: readonly string[],
  { values: stored }: Sample,
  cells: NamedValues,
  chosen: Chosen,
  map: ColumnMap,
): DescribedColumn[] {
  const { plan, preset, reasons } = chosen;
  const why = { map, reasons };
  if (plan !== null) {
    const roles = plan.roles.map((role) => (role === 'removed' ? 'property' : role));
    return describeColumns({ ...plan, roles }, columns, stored, cells, why);
  }
  const isUnread = (header !== null && preset === null) || stored.names.length === 0;
  return isUnread ? describeUnread(columns, cells) : describeKeys(stored, chosen);
}

async function headOf(store: BeginningStore, { ref, chunks, head }: ReceivedFile): Promise<string> {
  const bytes = head ?? (await store.readRange(ref, 0, Math.min(SNIFF_BYTES, chunks.at(-1)?.byteEnd ?? 0)));
  // Stream mode drops an incomplete character at the end.
  return new TextDecoder().decode(bytes, { stream: true });
}

/** Returns `null` if the columns do not determine the kind of records. */
function entityOf(header: CsvHeader | null, { entity }: InspectorOptions, chosen: Chosen): LoadEntity | null {
  const { plan, preset, isForeign } = chosen;
  if (header === null || preset !== null)
    return isForeign && preset === null && entity === 'auto' ? null : entity;
  return plan?.entity ?? null;
}

async function readSample(
  original: BeginningStore,
  beginning: ReceivedFile,
  { rewriter, source = {}, ...options }: InspectorOptions & Pick<InspectOptions, 'rewriter'>,
  chosen: Chosen,
  max: number,
): Promise<Sample> {
  const sample = new Sample(max);
  const entity = entityOf(beginning.header, options, chosen);
  if (entity === null) return sample;
  const { map, preset } = chosen;
  const { store, received } =
    preset === null
      ? { store: original, received: beginning }
      : await rewriteBeginning(
          requireRewriter(rewriter).rewrite(original, beginning, preset, source),
          beginning,
        );
  const { chunks, isWhole } = received;
  const { rules = null } = options;
  const stage = rules && (await openSample(rules));
  const reader = createChunkReader(sourceOf(received, { ...options, map, preset, entity }), store, stage);
  for (const chunk of chunks) {
    if (sample.records >= max) break;
    const rows = await reader.read(chunk);
    // If only the beginning of a file was read, its last record may be incomplete.
    const isCut = !isWhole && chunk === chunks.at(-1);
    sample.add(rows, chunk.firstRow, chunk.rowCount - (isCut ? 1 : 0));
  }
  if (stage !== null) sample.findings = stage.findings.all;
  return sample;
}

async function rewriteBeginning(lines: AsyncIterable<Buffer>, beginning: ReceivedFile) {
  const pieces: Buffer[] = [];
  const received = await rewriteFile(beginning, lines, async (rewritten) => {
    for await (const piece of rewritten) pieces.push(piece);
    return beginning.ref;
  });
  const bytes = Buffer.concat(pieces);
  const store: BeginningStore = { readRange: async (_, start, end) => bytes.subarray(start, end) };
  return { received, store };
}

function sourceOf(received: ReceivedFile, { map, entity, preset }: InspectorOptions): ReadSource {
  return {
    entity,
    preset,
    columnMap: map,
    header: received.header,
    fileRef: received.ref,
    fileFormat: received.format,
    jobId: 'inspection',
    environmentId: 0,
    recordKey: '',
    acceptedAt: `${new Date().toISOString().slice(0, -1)}000Z`,
  };
}

class Sample {
  records = 0;
  readonly rows: FileContent['rows'] = [];
  findings: FileContent['findings'] = [];
  /** Properties are `metadata.<name>`. */
  readonly values = new NamedValues();
  readonly #max: number;
  readonly #byCode: Record<string, number> = {};
  readonly rejects: FileContent['rejects'] = { count: 0, by_code: this.#byCode, items: [] };

  constructor(max: number) {
    this.#max = max;
  }

  add(rows: Rows, firstRow: number, count: number): void {
    const added = Math.min(count, this.#max - this.records);
    for (const { record, kind, fields, metadata } of storedRecords(rows, added)) {
      if (this.rows.length < SHOWN_RECORDS)
        this.rows.push({ row: firstRow + record, event_type: kind, ...fields, metadata });
      for (const [name, value] of Object.entries(fields)) this.values.add(name, value);
      for (const [name, value] of Object.entries(metadata)) this.values.add(`metadata.${name}`, value);
    }
    const { items } = this.rejects;
    for (const reject of rows.rejects) {
      if (reject.row - firstRow >= added) continue;
      this.rejects.count++;
      this.#byCode[reject.code] = (this.#byCode[reject.code] ?? 0) + 1;
      if (items.length < SHOWN_RECORDS) items.push(renderReject(reject));
    }
    this.records += added;
  }
}

export function renderInspection(inspection: Inspection) {
  return { ...renderContent(inspection), ...renderProblem(inspection) };
}

/**
 * Renders the members that depend only on the file's content. If the file has many columns, these
 * members take megabytes.
 */
export function renderContent({ problem: _, readAs, ...content }: Inspection) {
  return { ...content, read_as: renderReadAs(readAs) };
}

export function renderProblem({ problem }: InspectionBase) {
  const [first] = problem?.problems ?? [];
  return {
    problem: first ? { error_code: first.code, message: first.message, details: first.details } : null,
  };
}

export function renderUnreadable(problem: InputError) {
  const none: FileContent = {
    head: '',
    whole_file: false,
    records: 0,
    entity: null,
    preset: null,
    map: {},
    columns: [],
    column_names: null,
    rows: [],
    findings: [],
    rejects: { count: 0, by_code: {}, items: [] },
  };
  return { ...none, read_as: null, ...renderProblem({ ...none, problem }) };
}
