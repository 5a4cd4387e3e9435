/** Writes the data files of the lake, and compares written files with their source. */
import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import { Fault, TransientError } from '../../base/errors.ts';
import { instantOfMicros } from '../../base/instant.ts';
import { idColumn } from '../../domain/entity.ts';
import { type ExportFile, type ExportRequest, everything } from '../../domain/export.ts';
import type { Filter } from '../../export/filter.ts';
import { AttemptFiles, StoredFileWriter } from '../../export/write/attempt-files.ts';
import { selectValues } from '../../export/write/page.ts';
import { ParquetFile } from '../../export/write/parquet.ts';
import type { RowBlock } from '../../export/write/rows.ts';
import { type FileFacts, groupRows } from '../../export/write/split-files.ts';
import { type FilePlan, planRows, writeFiles } from '../../export/write/write-export.ts';
import { type FileRef, type FileStore, hashFile, MissingFileError } from '../../files/file-store.ts';
import { compileForCopy } from '../../postgres/copy-out.ts';
import type { Snapshot } from '../../postgres/session.ts';
import { createDataFile, type LakeContext, openFields } from './commit.ts';
import { type DataFile, describeData, forgetFile, type WrittenFile } from './file-store.ts';
import { IdFilter } from './id-filter.ts';
import type { LakeMonth } from './month-store.ts';
import { contentOf, type Erasure, readGroups, valuesOf } from './read-events.ts';

/** Archive files are small, so that a deletion has less to rewrite. */
const ARCHIVE_PART_BYTES = 64 * 1024 * 1024;

type Place = Parameters<typeof createDataFile>[1];
type WriteContext = Pick<LakeContext, 'db' | 'files'>;

/** `events` is the table that contains the events. Default: `sluice.events`. */
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
  return { ...planRows('events', everything, select), content: null };
}

const monthStart = (month: string, after: number) =>
  Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5, 7)) - 1 + after);

export async function hashPlan({ client }: Snapshot, plan: FilePlan): Promise<string> {
  const hash = createHash('sha256');
  for await (const { bytes } of plan.blocks(client, new AbortController().signal)) hash.update(bytes);
  return hash.digest('hex');
}

export async function writeData(
  context: WriteContext & { readonly log: Logger },
  snapshot: Snapshot,
  place: Place,
  plan: FilePlan,
): Promise<readonly WrittenFile[]> {
  const { db } = context;
  const store = { ...context.files, create: () => createDataFile(context, place) };
  const files = new AttemptFiles(store);
  const written: WrittenFile[] = [];
  try {
    await writeFiles(snapshot, files, plan, {
      request: everything,
      splitBytes: ARCHIVE_PART_BYTES,
      owner: {
        openIds: () => new IdFilter(),
        fields: await openFields(db, place.environmentId),
        onFile: async (file, facts) => void written.push(await describe(context, file, facts)),
      },
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
    if (written.some(({ rows }) => rows > 0)) return written;
    // If the plan has no rows, the only file is empty and is removed.
    await files.discard(context.log);
    for (const { ref } of written) await forgetFile(db, ref);
    return [];
  } catch (error) {
    await files.discard(context.log);
    throw error;
  }
}

async function describe(
  { db }: Pick<WriteContext, 'db'>,
  { ref, bytes, rows, sha256 }: Omit<ExportFile, 'filename' | 'dataset'>,
  facts: FileFacts,
): Promise<WrittenFile> {
  const file = { ref: ref as FileRef, bytes, rows, sha256 };
  await describeData(db, file, facts);
  return file;
}

export async function checkLength(files: FileStore, { ref, bytes }: WrittenFile): Promise<void> {
  const size = await files.size(ref);
  if (size === null) throw new MissingFileError('a file of the lake is gone');
  if (size !== bytes) throw damaged();
}

const damaged = (): Fault => new Fault('a file of the lake is not stored as it was written');

export async function checkContent(
  files: FileStore,
  data: readonly WrittenFile[],
  expected: string,
): Promise<void> {
  for (const file of data) await checkLength(files, file);
  const content = await contentOf(files, data).catch((error: unknown) => {
    if (error instanceof TransientError) throw error;
    return null;
  });
  if (content !== expected) throw damaged();
}

export async function checkStored(files: FileStore, file: WrittenFile): Promise<void> {
  await checkLength(files, file);
  if ((await hashFile(files, file.ref)) !== file.sha256) throw damaged();
}

interface Rewritten {
  readonly file: WrittenFile | null;
  /** Number of changed or removed events for each erased id. */
  readonly counts: ReadonlyMap<string, number>;
}

/**
 * Writes a file without the erased ids. Returns `null` if the old file contains none of these ids.
 * A row group without erased ids is copied unchanged if it has the current property columns. If the
 * copy fails, the new file is removed.
 */
export async function rewriteData(
  { db, files }: WriteContext,
  data: DataFile,
  place: Place,
  { throwIfAborted, ...erasure }: Erasure & { throwIfAborted(): void },
): Promise<Rewritten | null> {
  const fields = await openFields(db, place.environmentId);
  const writer = await createDataFile({ db, files }, place);
  const stored = new StoredFileWriter(writer, 'none');
  const counts = new Map<string, number>();
  try {
    const owner = { fields, openIds: () => new IdFilter(), onFile: async () => undefined };
    const parquet = new ParquetFile({ dataset: 'events', request: everything, owner }, stored, groupRows);
    let rows = 0;
    for await (const group of readGroups(files, data)) {
      throwIfAborted();
      const ids = await group.column(idColumn[erasure.entity]);
      const erased = ids.filter((id) => id !== null && erasure.ids.has(id)) as string[];
      for (const id of erased) counts.set(id, (counts.get(id) ?? 0) + 1);
      rows += group.rows - (erasure.entity === 'users' ? erased.length : 0);
      if (erased.length === 0 && group.hasFields(fields)) await parquet.addPacked(group);
      else await writeGroup(parquet, await valuesOf(group, erasure));
    }
    if (counts.size === 0 || rows === 0) {
      await stored.discard();
      await forgetFile(db, writer.ref);
      return counts.size === 0 ? null : { file: null, counts };
    }
    const facts = await parquet.end();
    const file = await describe({ db }, { rows, ...(await stored.finish()) }, facts as FileFacts);
    return { file, counts };
  } catch (error) {
    await stored.discard();
    throw error;
  }
}

async function writeGroup(parquet: ParquetFile, { bytes, ends }: RowBlock): Promise<void> {
  if (ends.length === 0) return;
  for (const [row, end] of ends.entries())
    parquet.addRow(bytes, row === 0 ? 0 : (ends[row - 1] as number), end);
  await parquet.endGroup();
}
