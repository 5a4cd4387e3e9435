/*
 * Finds out what a file holds without loading it: its beginning is received as an upload is, and its chunks are read by the loader's
 * own reader, so that what is shown is what would be loaded.
 */
import type { InspectedColumn } from '../../api/upload.ts';
import { type ColumnMap, resolveMap } from '../../domain/column-map.ts';
import type { LoadEntity } from '../../domain/entity.ts';
import type { InputError } from '../../domain/errors.ts';
import { SHOWN_RECORDS, SNIFF_BYTES } from '../../domain/limits.ts';
import type { LoadOptions, Preset } from '../../domain/load.ts';
import type { Reject } from '../../domain/reject.ts';
import { type CountedFinding, hasPersonalRules, type RulesDocument } from '../../domain/rules.ts';
import type { ReadAs, SourceOptions } from '../../domain/source.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { Rows } from '../../mapping/rows.ts';
import { FindingCounts } from '../../mapping/ruled-cells.ts';
import { hiddenValues } from '../../personal/values.ts';
import type { LoadSource } from '../../postgres/stores/running-loads.ts';
import { findForeign, readBeginning } from '../foreign-file.ts';
import { createChunkReader } from '../read-chunk.ts';
import type { ReceiveLimits } from '../receive/intake.ts';
import { type ReceivedFile, type ReceiveHints, receive } from '../receive/receive.ts';
import type { ReceivingStore } from '../receive/unpack.ts';
import { renderReadAs, renderReject } from '../render-load.ts';
import {
  asForeign,
  asGiven,
  type Chosen,
  choose,
  describeColumns,
  describeKeys,
  describeUnread,
  lacksId,
  proposeByValues,
  withProposal,
} from './choose.ts';
import { NamedValues, readValues, recordsWithin, type StoredRecord, storedRecords } from './values.ts';

/** Bytes of text that an inspection reads. */
export const INSPECTED_BYTES = 8 * 1024 * 1024;

/** The result of every inspection, in a sandbox or not. */
export interface Looked {
  /** The names of the columns, where a record of the file names them; else null. */
  readonly columnNames: readonly string[] | null;
  /** Why the file could not be loaded with the options that were given. */
  readonly problem: InputError | null;
}

/** An inspection, and the saved mappings of files with the same header. */
export interface OfferedInspection<Found extends Looked> {
  readonly found: Found;
  /** Their names, that of the one used last first. */
  readonly saved: readonly string[];
  /** The one that was asked for, or is proposed; null: none. */
  readonly mapping: string | null;
}

export interface Inspection extends Looked {
  readonly readAs: ReadAs;
  /** The beginning of the text, as it was decoded: SNIFF_BYTES of it. */
  readonly head: string;
  readonly isWhole: boolean;
  readonly records: number;
  /** The entity; null if no record or column tells. */
  readonly entity: LoadEntity | null;
  readonly columns: readonly InspectedColumn[];
  /** A value for `map`: the given one with proposals. */
  readonly map: ColumnMap;
  /** The product whose export file it is: what was given, or is proposed. */
  readonly preset: Preset | null;
  readonly refused: {
    readonly count: number;
    readonly byCode: Readonly<Record<string, number>>;
    readonly samples: readonly Reject[];
  };
  readonly rows: readonly InspectedRow[];
  /** The rules that records broke without being refused. */
  readonly findings: readonly CountedFinding[];
}

/** `row`: its position among the records of the file, from 1. */
interface InspectedRow extends Omit<StoredRecord, 'record'> {
  readonly row: number;
}

/**
 * Looks at the beginning of a file: INSPECTED_BYTES of its text, and of these as many records as `recordsWithin` allows. Leaves nothing in the store.
 * @throws InputError where it cannot be read as a file of records at all; what `receive` throws.
 */
export async function inspectFile<Found>(
  store: ReceivingStore,
  source: AsyncIterable<Uint8Array>,
  hints: ReceiveHints,
  options: LookOptions,
  limits: ReceiveLimits,
  signal: AbortSignal,
  lookAt: Look<Found>,
): Promise<Found> {
  const received = await receive(source, store, { ...hints, sampleBytes: INSPECTED_BYTES }, limits, signal);
  try {
    return await lookAt(store, received, options, signal);
  } finally {
    await store.remove(received.ref);
  }
}

export interface LookOptions extends Pick<LoadOptions, 'entity' | 'map' | 'preset'> {
  /** The reason that is shown for what `map` says. */
  readonly mapSays?: string;
  readonly source?: SourceOptions;
  /** By default none. */
  readonly rules?: RulesDocument | null;
}

type LookedStore = Pick<ReceivingStore, 'readRange'>;

/** Inspects a received beginning, in this process or in a sandbox. */
export type Look<Found> = (
  store: LookedStore,
  received: ReceivedFile,
  options: LookOptions,
  signal: AbortSignal,
) => Promise<Found>;

export async function look(
  store: LookedStore,
  received: ReceivedFile,
  options: LookOptions,
): Promise<Inspection> {
  const { header, readAs } = received;
  const beginning = await readBeginning(store, received);
  const columns = beginning.names;
  const hasHeader = readAs.csv?.headerLine !== null;
  const given = resolveMap(options.map, columns, hasHeader);
  const said = { ...options, map: given };
  const most = recordsWithin(columns.length, SHOWN_RECORDS);
  const foreign = findForeign(beginning, header !== null, said);
  const isRefused = foreign !== null && (options.preset !== null || options.entity === 'auto');
  let chosen = isRefused ? asForeign(said, foreign, columns) : asGiven(said);
  const isPlanned = header !== null && chosen.preset === null && !isRefused;
  if (isPlanned) chosen = choose(header, columns, said, foreign !== null);
  let sample = await readSample(store, received, said, chosen, most);
  // The keys of a JSON record say what it is. Only if no record can be stored are other names for the keys considered.
  const isUnread = header === null && chosen.preset === null && sample.rows.length === 0;
  if (isUnread && !isRefused) chosen = choose(null, columns, said, foreign !== null);
  const values = header === null && !isUnread ? new NamedValues() : await readValues(store, received, most);
  if (lacksId(chosen)) chosen = withProposal(chosen, proposeByValues(columns, values, said), header, said);
  if (chosen.reasons.size > 0 && sample.rows.length === 0)
    sample = await readSample(store, received, said, chosen, most);
  const { map, preset, problem } = chosen;
  const { records, rows, findings } = sample;
  const isPersonal = hasPersonalRules(options.rules ?? {});
  if (isPersonal) values.hide();
  const refused = isPersonal ? withoutRecords(sample.refused) : sample.refused;
  return {
    readAs,
    head: isPersonal ? '' : await headOf(store, received),
    isWhole: received.isWhole && records === received.totalRows,
    records,
    entity: entityOf(header, said, chosen),
    columns: describe(header, columns, sample, values, chosen, { ...said, given }),
    columnNames: hasHeader && header !== null ? header.columns : null,
    map,
    preset,
    problem,
    refused,
    rows,
    findings: findings.all,
  };
}

/** Refused records may hold personal values anywhere. */
function withoutRecords({ samples, ...refused }: Inspection['refused']): Inspection['refused'] {
  return {
    ...refused,
    samples: samples.map((reject) => ({ ...reject, message: reject.code, raw: Buffer.alloc(0) })),
  };
}

function describe(
  header: CsvHeader | null,
  columns: readonly string[],
  { values: stored }: Sample,
  cells: NamedValues,
  chosen: Chosen,
  { mapSays = 'map says so', given, source }: LookOptions & { readonly given: ColumnMap },
): InspectedColumn[] {
  const { plan, preset, reasons } = chosen;
  const why = { given, mapSays, reasons };
  if (plan !== null) {
    const roles = plan.roles.map((role) =>
      role === 'removed' && source?.removals !== true ? 'property' : role,
    );
    return describeColumns({ ...plan, roles }, columns, stored, cells, why);
  }
  const isUnread = (header !== null && preset === null) || stored.names.length === 0;
  return isUnread ? describeUnread(columns, cells) : describeKeys(stored, chosen, mapSays);
}

async function headOf(store: LookedStore, { ref, chunks }: ReceivedFile): Promise<string> {
  const bytes = await store.readRange(ref, 0, Math.min(SNIFF_BYTES, chunks.at(-1)?.byteEnd ?? 0));
  // In stream mode the decoder leaves out a character that is cut off.
  return new TextDecoder().decode(bytes, { stream: true });
}

/** Returns null if the columns do not tell. */
function entityOf(header: CsvHeader | null, { entity }: LookOptions, chosen: Chosen): LoadEntity | null {
  const { plan, preset, isForeign } = chosen;
  if (header === null || preset !== null)
    return isForeign && preset === null && entity === 'auto' ? null : entity;
  return plan?.entity ?? null;
}

async function readSample(
  store: LookedStore,
  received: ReceivedFile,
  options: LookOptions,
  chosen: Chosen,
  most: number,
): Promise<Sample> {
  const { header, chunks, isWhole } = received;
  const sample = new Sample(most);
  const entity = entityOf(header, options, chosen);
  if (entity === null) return sample;
  const { map, preset } = chosen;
  const reader = createChunkReader(
    sourceOf(received, { ...options, map, preset, entity }),
    store,
    hiddenValues,
  );
  for (const chunk of chunks) {
    if (sample.records >= most) break;
    const rows = await reader.read(chunk, { isDated: true });
    // The last record of a beginning may be cut.
    const isCut = !isWhole && chunk === chunks.at(-1);
    sample.add(rows, chunk.firstRow, chunk.rowCount - (isCut ? 1 : 0));
  }
  return sample;
}

function sourceOf(
  received: ReceivedFile,
  { map, entity, preset, source = {}, rules = null }: LookOptions,
): LoadSource {
  return {
    type: 'import',
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
    yields: null,
    removals: source.removals === true ? 'taken' : 'unasked',
    companyFrom: source.companyFrom ?? null,
    mends: source.mend ?? [],
    keepsKeys: false,
    unflags: null,
    namesAliases: false,
    hasSuppressions: false,
    recordKey: '',
    rules,
  };
}

class Sample {
  records = 0;
  readonly rows: InspectedRow[] = [];
  readonly findings = new FindingCounts();
  /** Fields, and properties as `metadata.<name>`. */
  readonly values = new NamedValues();
  readonly #most: number;
  readonly #byCode: Record<string, number> = {};
  readonly #rejects: Reject[] = [];
  #refused = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(rows: Rows, firstRow: number, count: number): void {
    const taken = Math.min(count, this.#most - this.records);
    for (const { record, ...stored } of storedRecords(rows, taken)) {
      if (this.rows.length < SHOWN_RECORDS) this.rows.push({ row: firstRow + record, ...stored });
      for (const [name, value] of Object.entries(stored.fields)) this.values.add(name, value);
      for (const [name, value] of Object.entries(stored.metadata)) this.values.add(`metadata.${name}`, value);
    }
    for (const reject of rows.rejects) {
      if (reject.row - firstRow >= taken) continue;
      this.#refused++;
      this.#byCode[reject.code] = (this.#byCode[reject.code] ?? 0) + 1;
      if (this.#rejects.length < SHOWN_RECORDS) this.#rejects.push(reject);
    }
    this.findings.addCounted(rows.findings.all);
    this.records += taken;
  }

  get refused(): Inspection['refused'] {
    return { count: this.#refused, byCode: this.#byCode, samples: this.#rejects };
  }
}

/* An inspection as callers see it, over HTTP and with `--json`. */

export function renderInspection(offered: OfferedInspection<Inspection>) {
  return { ...renderFound(offered.found), ...renderOffer(offered) };
}

type Found = Omit<Inspection, 'readAs'> & { readonly readAs: ReadAs | null };

/** Renders what depends on the file alone: of a wide one, megabytes. */
export function renderFound({ readAs, head, isWhole, records, entity, columns, ...found }: Found) {
  const { columnNames, map, preset, refused, rows, findings } = found;
  const { count, byCode, samples } = refused;
  return {
    read_as: readAs === null ? null : renderReadAs(readAs),
    head,
    entity,
    records,
    whole_file: isWhole,
    columns: [...columns],
    column_names: columnNames === null ? null : [...columnNames],
    map: { ...map },
    preset,
    rejects: {
      count,
      by_code: { ...byCode },
      items: samples.map((reject) => renderReject(reject)),
    },
    findings: [...findings],
    rows: rows.map(({ row, kind, fields, metadata }) => ({ row, event_type: kind, ...fields, metadata })),
  };
}

/** Renders the rest, for which the saved mappings are needed. */
export function renderOffer({ found: { problem }, saved, mapping }: OfferedInspection<Looked>) {
  return {
    mapping,
    saved_mappings: [...saved],
    problem: problem === null ? null : renderProblem(problem),
  };
}

function renderProblem({ problems: [first] }: InputError) {
  return { error_code: first.code, message: first.message, details: first.details };
}

/** Renders the inspection of a file that cannot be read as records. */
export function renderUnreadable(problem: InputError, mapping: string | null) {
  const found = {
    ...{ head: '', isWhole: false, records: 0, entity: null, columns: [], columnNames: null, map: {} },
    ...{
      preset: null,
      refused: { count: 0, byCode: {}, samples: [] },
      rows: [],
      findings: [],
      readAs: null,
      problem,
    },
  };
  return { ...renderFound(found), ...renderOffer({ found, saved: [], mapping }) };
}
