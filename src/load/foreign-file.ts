import { type InputError, inputError } from '../base/errors.ts';
import { SHOWN_RECORDS } from '../base/limits.ts';
import { capitaliseSentence } from '../base/sentence.ts';
import type { LoadOptions } from '../domain/load.ts';
import type { FileStore } from '../files/file-store.ts';
import { type JsonObject, parseObject } from '../formats/json-text.ts';
import { listed, ownName } from './map/column-plan.ts';
import { type ForeignRecords, foreignColumns, foreignRecord, type Recognise } from './map/foreign.ts';
import type { ReceivedFile } from './receive/received-file.ts';

/** Number of bytes that are read from the start of a JSON file to find its first records. */
const FIRST_BYTES = 1024 * 1024;

/** Header of a CSV file, or the first few records of a JSON file. */
export interface Beginning {
  readonly records: readonly JsonObject[];
  /** Column names of a CSV file, or keys of a JSON file. */
  readonly names: readonly string[];
}

export async function readBeginning(
  files: Pick<FileStore, 'readRange'>,
  { ref, chunks: [chunk], header }: Pick<ReceivedFile, 'ref' | 'chunks' | 'header'>,
): Promise<Beginning> {
  if (header !== null) return { records: [], names: header.columns };
  if (chunk === undefined) return { records: [], names: [] };
  const end = Math.min(chunk.byteEnd, chunk.byteStart + FIRST_BYTES);
  const text = (await files.readRange(ref, chunk.byteStart, end)).toString('utf8');
  const records = text
    .split('\n', SHOWN_RECORDS)
    .map(parseObject)
    .filter((record) => record !== null);
  return { records, names: [...new Set(records.flatMap((record) => Object.keys(record)))] };
}

/**
 * Returns the first record that is in the format of another service, or `null`. For a load with a
 * preset, returns `null` if any record fits the preset. If none fits, returns the first record for
 * another preset.
 */
export function findForeign(
  { records, names }: Beginning,
  isCsv: boolean,
  { map, preset }: Pick<LoadOptions, 'map' | 'preset'>,
  recognise: Recognise | null,
): ForeignRecords | null {
  const ours = (name: string): string => ownName(map, name) ?? name;
  const renamed = (record: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(record).map(([name, value]) => [ours(name), value]));
  const candidates = isCsv
    ? [foreignColumns(names.map(ours), recognise)]
    : records.map((record) => foreignRecord(renamed(record), recognise));
  if (preset !== null && candidates.some((each) => each?.preset === preset)) return null;
  return candidates.find((each) => each !== null && (preset === null || each.preset !== null)) ?? null;
}

export function foreignProblem({ advice, preset }: ForeignRecords, names: readonly string[]): InputError {
  const details = preset === null ? `names seen: ${listed(names)}` : '';
  return inputError('unrecognised_columns', capitaliseSentence(advice), details);
}
