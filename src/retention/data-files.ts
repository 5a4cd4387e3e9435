/** Writing the data files of the lake, and comparing them with what they were written of. */
import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { LakeField } from '../domain/definitions.ts';
import { Fault } from '../domain/errors.ts';
import { type ExportFile, type ExportRequest, everything } from '../domain/export.ts';
import { columnsOf } from '../domain/export-columns.ts';
import { instantOfMicros } from '../domain/instant.ts';
import { ARCHIVE_PART_BYTES } from '../domain/limits.ts';
import type { Filter } from '../export/filter.ts';
import { AttemptFiles, StoredFileWriter } from '../export/write/attempt-files.ts';
import { ContentHash } from '../export/write/content-hash.ts';
import { type Hits, isWhole } from '../export/write/lake-hits.ts';
import { eventText, eventValues, readText } from '../export/write/lake-rows.ts';
import { selectValues } from '../export/write/page.ts';
import { ParquetFile } from '../export/write/parquet.ts';
import { ndjsonText, ndjsonWriter, type RowBlock } from '../export/write/rows.ts';
import { groupRows } from '../export/write/split-files.ts';
import { type FilePlan, planRows, writeFiles } from '../export/write/write-export.ts';
import { type FileRef, type FileStore, hashFile, MissingFileError } from '../files/file-store.ts';
import { createDataFile, type LakeContext, openFields } from '../lake/commit.ts';
import { readGroups } from '../lake/read-events.ts';
import type { LakeGroup } from '../lake/row-group.ts';
import { compileForCopy } from '../postgres/copy-out.ts';
import type { Snapshot } from '../postgres/session.ts';
import {
  type DataFile,
  describeData,
  type FileFacts,
  forgetFile,
  readSums,
  type WrittenFile,
} from '../postgres/stores/lake-files.ts';
import type { LakeMonth } from '../postgres/stores/lake-months.ts';

/** A complete file that the ledger knows and nobody reads yet. */
export interface NewData extends WrittenFile, Pick<FileFacts, 'content'> {}

type Place = Parameters<typeof createDataFile>[1];

/** Plans to read a month, of `sluice.events` unless of another table. */
export function selectEvents(
  { environmentId, month }: LakeMonth,
  {
    events = sql.table('events'),
    since = null,
  }: Partial<Pick<ExportRequest, 'since'> & Pick<Filter, 'events'>> = {},
): FilePlan {
  const [from, to] = [0, 1].map((months) => instantOfMicros(1000 * monthStart(month, months)));
  const request = { ...everything, from: from ?? null, to: to ?? null, since };
  const filter = { environmentId, request, segment: null, excludedSegments: [], events };
  const select = compileForCopy(selectValues('events', filter));
  // Each file has a content hash of its own.
  return { ...planRows('events', everything, select), content: null };
}

const monthStart = (month: string, after: number) =>
  Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5, 7)) - 1 + after);

/** Writes what the plan reads into data files; there is none without rows. */
export async function writeData(
  context: Pick<LakeContext, 'db' | 'files'> & { readonly log: Logger },
  snapshot: Snapshot,
  place: Place,
  plan: FilePlan,
  splitBytes = ARCHIVE_PART_BYTES,
): Promise<readonly NewData[]> {
  const { db } = context;
  // Each file is known before there is anything in it.
  const store = { ...context.files, create: () => createDataFile(context, place) };
  const files = new AttemptFiles(store);
  const written: NewData[] = [];
  try {
    await writeFiles(snapshot, files, plan, {
      request: everything,
      splitBytes,
      lake: {
        fields: await openFields(db, place),
        onFile: async (file, facts) => void written.push(await describe(context, file, facts)),
      },
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
    if (written.some(({ rows }) => rows > 0)) return written;
    // There is always one.
    await files.discard(context.log);
    for (const { ref } of written) await forgetFile(db, ref);
    return [];
  } catch (error) {
    await files.discard(context.log);
    throw error;
  }
}

async function describe(
  { db }: Pick<LakeContext, 'db'>,
  { ref, bytes, rows, sha256 }: ExportFile,
  facts: FileFacts,
): Promise<NewData> {
  const file = { ref: ref as FileRef, bytes, rows, sha256 };
  await describeData(db, file, facts);
  return { ...file, content: facts.content };
}

/** Looks whether a file is there as long as it was written. @throws Fault, MissingFileError */
export async function checkLength(files: FileStore, { ref, bytes }: NewData): Promise<void> {
  const found = await files.size(ref);
  if (found === null) throw new MissingFileError('a file of the lake is gone');
  if (found !== bytes) throw damaged();
}

const damaged = (): Fault => new Fault('a file of the lake is not stored as it was written');

/** Reads all of a file from where it is stored, and compares it with its rows: it is what will be left of them. @throws Fault */
export async function checkContent(files: FileStore, file: NewData): Promise<void> {
  await checkLength(files, file);
  if ((await hashFile(files, file.ref)) !== file.sha256) throw damaged();
  const { rows, content } = await contentOf(readText(files, [{ ...file, firstMicros: 0 }]));
  if (rows !== file.rows || content !== file.content) throw damaged();
}

export async function contentOf(
  blocks: AsyncIterable<RowBlock>,
): Promise<{ readonly rows: number; readonly content: string }> {
  const hash = new ContentHash('events', ndjsonText);
  const toText = ndjsonWriter(columnsOf('events', everything));
  let rows = 0;
  for await (const block of blocks) {
    hash.add(block.isText === true ? block : toText(block));
    rows += block.ends.length;
  }
  return { rows, content: hash.digest() };
}

/**
 * Writes a file again with what `change` leaves of its row groups; null if that is nothing. Those that it leaves as they are, are
 * copied if they have the columns of the properties. If it fails, nothing is left of the new file.
 */
export async function rewriteData(
  { db, files }: Pick<LakeContext, 'db' | 'files'>,
  archive: DataFile,
  place: Place,
  change: (group: LakeGroup) => Hits,
): Promise<NewData | null> {
  const fields = await openFields(db, place);
  const stored = new StoredFileWriter(await createDataFile({ db, files }, place), 'none');
  try {
    const lake = { fields, onFile: async () => undefined };
    const parquet = new ParquetFile({ dataset: 'events', request: everything, lake }, stored, groupRows);
    const toValues = eventValues();
    const toText = eventText();
    let rows = 0;
    for await (const group of readGroups(files, { ...archive, sums: await readSums(db, archive) })) {
      const hits = change(group);
      rows += hits.rows.length;
      if (canCopy(hits, fields)) await parquet.addPacked({ group, text: () => toText(hits) });
      else if (hits.rows.length > 0) await writeGroup(parquet, toValues(hits));
      group.release();
    }
    if (rows === 0) {
      await stored.discard();
      return null;
    }
    const facts = await parquet.end();
    const file = { filename: 'events.parquet', dataset: 'events', rows, ...(await stored.finish()) } as const;
    return await describe({ db }, file, facts as FileFacts);
  } catch (error) {
    await stored.discard();
    throw error;
  }
}

const canCopy = (hits: Hits, fields: readonly LakeField[]): boolean =>
  isWhole(hits) && hits.group.hasFields(fields);

async function writeGroup(parquet: ParquetFile, { bytes, ends }: RowBlock): Promise<void> {
  for (const [row, end] of ends.entries())
    parquet.addRow(bytes, row === 0 ? 0 : (ends[row - 1] as number), end);
  await parquet.endGroup();
}
