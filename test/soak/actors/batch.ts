import { gzipSync } from 'node:zlib';
import type { Random } from '../random.ts';
import type { ProfileSpace, Properties, Value } from './profile-space.ts';

const batchFormats = ['csv', 'ndjson', 'array'] as const;
export type BatchFormat = (typeof batchFormats)[number];

/** A record, or one that must be refused. */
type BatchRecord = { readonly key: string; readonly properties: Properties } | null;

/** Records of one file or array. */
export interface Batch {
  readonly space: ProfileSpace;
  readonly format: BatchFormat;
  readonly records: readonly BatchRecord[];
}

/** Returns the counts that a load of a batch must come to, if the batch is laid over the space at that point. */
export interface Expected {
  readonly read: number;
  readonly inserted: number;
  /** Updated or unchanged. */
  readonly known: number;
  readonly superseded: number;
  /** Numbers of the records that are refused, from 1. */
  readonly refused: readonly number[];
}

const plans = ['free', 'pro', 'team', 'enterprise'];
const notes = ['plain', 'with, comma', 'with "quotes"', 'two\nlines', 'snow ☃, 雪', "it's; fine"];

/** Keys of the space, a tenth of them more than once in the batch; one record in fifty is not fit to be taken. */
export function createBatch(
  space: ProfileSpace,
  format: BatchFormat,
  {
    random,
    rows,
    keys,
    mark,
  }: {
    readonly random: Random;
    readonly rows: number;
    /** Keys there are in all. */
    readonly keys: number;
    /** Tells this batch from every other. */
    readonly mark: string;
  },
): Batch {
  const used: string[] = [];
  const records = Array.from({ length: rows }, (_, row): BatchRecord => {
    // Not the first one: a file without a single good record is refused as a whole.
    if (row > 0 && random.chance(0.02)) return null;
    const again = used.length > 0 && random.chance(0.1);
    const key = again ? random.pick(used) : `${space.prefix}${random.integer(1, keys)}`;
    used.push(key);
    return { key, properties: createProperties(format, random, `${mark}.${row}`) };
  });
  return { space, format, records };
}

function createProperties(format: BatchFormat, random: Random, mark: string): Properties {
  const plan = random.pick(plans);
  const note = random.pick(notes);
  if (format === 'csv') return { mark, plan, note, score: String(random.integer(0, 99)) };
  const properties: Record<string, Value | null> = { mark, score: random.integer(0, 99) };
  if (random.chance(0.5)) properties['plan'] = random.chance(0.2) ? null : plan;
  if (random.chance(0.3)) properties['note'] = note;
  return properties;
}

/** Lays the records over the space, one after another, and says what the load's tally must be. */
export function layBatch({ space, records }: Batch): Expected {
  const met = new Set<string>();
  const refused: number[] = [];
  let [inserted, known, superseded] = [0, 0, 0];
  for (const [row, record] of records.entries()) {
    if (record === null) refused.push(row + 1);
    else {
      if (met.has(record.key)) superseded++;
      else if (space.has(record.key)) known++;
      else inserted++;
      met.add(record.key);
      space.lay(record.key, record.properties);
    }
  }
  return { read: records.length, inserted, known, superseded, refused };
}

/** The bytes, and how they are to be sent. */
export interface Rendered {
  readonly path: string;
  readonly contentType: string;
  /** The end of a file's name. */
  readonly extension: string;
  readonly bytes: Buffer<ArrayBuffer>;
}

export function renderBatch(batch: Batch, options: { readonly gzip: boolean }): Rendered {
  const { format, space } = batch;
  const plain = Buffer.from(renderers[format](batch), 'utf8');
  const bytes = options.gzip ? Buffer.from(gzipSync(plain)) : plain;
  if (format === 'array') {
    const path = `/v1/${space.entity}/bulk_identify`;
    return { path, contentType: 'application/json', extension: 'json', bytes };
  }
  const path = `/v1/imports?entity=${space.entity}&format=${format}`;
  const contentType = options.gzip ? 'application/gzip' : mediaTypes[format];
  return { path, contentType, extension: options.gzip ? `${format}.gz` : format, bytes };
}

const mediaTypes = { csv: 'text/csv', ndjson: 'application/x-ndjson' } as const;
const columns = ['mark', 'plan', 'note', 'score'] as const;

const renderers: Readonly<Record<BatchFormat, (batch: Batch) => string>> = {
  csv: ({ space, records }) => {
    const lines = records.map((record, row) =>
      record === null
        ? unfit(row, `,no id,,${row},\n`, `"no id at all",x\n`)
        : `${[record.key, ...columns.map((name) => record.properties[name] ?? '')].map(quote).join(',')}\n`,
    );
    return `${idOf(space)},${columns.join(',')}\n${lines.join('')}`;
  },
  ndjson: ({ space, records }) =>
    records
      .map((record, row) =>
        record === null
          ? unfit(row, '{"metadata":{"mark":"no id"}}\n', '{"broken": \n')
          : `${JSON.stringify({ [idOf(space)]: record.key, metadata: record.properties })}\n`,
      )
      .join(''),
  array: ({ space, records }) =>
    JSON.stringify({
      [space.entity]: records.map((record, row) =>
        record === null
          ? { [idOf(space)]: unfit(row, '', 'x'.repeat(300)) }
          : { [idOf(space)]: record.key, metadata: record.properties },
      ),
    }),
};

function idOf({ entity }: ProfileSpace): string {
  return entity === 'users' ? 'user_id' : 'company_id';
}

/** Two ways to be refused take turns. */
function unfit(row: number, one: string, other: string): string {
  return row % 2 === 0 ? one : other;
}

function quote(value: Value): string {
  const text = String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
