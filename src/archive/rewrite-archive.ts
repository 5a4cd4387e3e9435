import type { ExportFile } from '../domain/export.ts';
import { StoredFileWriter } from '../export/write/attempt-files.ts';
import { type Columns, ParquetFile, parquetColumns } from '../export/write/parquet.ts';
import type { FileRef, FileStore, FileWriter } from '../files/file-store.ts';
import { type ArchivedEvent, readArchive } from './read-archive.ts';

/** What becomes of an event; null: it is left out. */
export type ChangeEvent = (event: ArchivedEvent) => ArchivedEvent | null;

/**
 * Writes a file again with its events changed, a row group at a time; null if none is left. If it fails, nothing is left of
 * the new file.
 */
export async function rewriteArchive(
  files: FileStore,
  archive: { readonly ref: FileRef; readonly bytes: number; readonly rows: number },
  create: () => Promise<FileWriter>,
  change: ChangeEvent,
): Promise<ExportFile | null> {
  const columns = parquetColumns('events');
  const stored = new StoredFileWriter(await create(), 'none');
  try {
    const parquet = new ParquetFile(columns, stored);
    let rows = 0;
    for await (const group of readArchive(files, archive)) {
      const kept = group.map(change).filter((event) => event !== null);
      if (kept.length === 0) continue;
      await parquet.addGroup(columnsOf(columns, kept), kept.length);
      rows += kept.length;
    }
    if (rows === 0) {
      await stored.discard();
      return null;
    }
    await parquet.end();
    return { filename: 'events.parquet', dataset: 'events', rows, ...(await stored.finish()) };
  } catch (error) {
    await stored.discard();
    throw error;
  }
}

function columnsOf(columns: readonly { readonly name: string }[], events: readonly ArchivedEvent[]): Columns {
  return columns.map(({ name }) =>
    events.map((event) =>
      name === 'inserted_at' ? BigInt(event.micros) : (event[name as keyof ArchivedEvent] as string | null),
    ),
  );
}
