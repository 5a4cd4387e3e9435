/* Which record of a file a value came from: its chunk is read once more, as the load read it. */
import type { Entity } from '../domain/entity.ts';
import type { ChunkRange } from '../domain/load.ts';
import type { FileStore } from '../files/file-store.ts';
import type { ProfileRow } from '../mapping/row-buffer.ts';
import { hiddenValues } from '../personal/values.ts';
import type { LoadSource } from '../postgres/stores/running-loads.ts';
import { createChunkReader } from './read-chunk.ts';

export interface SoughtRecords {
  readonly source: LoadSource;
  readonly chunk: ChunkRange;
  /** Rows of the chunk that the database refused. */
  readonly refused: ReadonlySet<number>;
  readonly entity: Entity;
  readonly id: string;
  /** Names of properties; null stands for the company. */
  readonly names: readonly (string | null)[];
}

export interface FoundRecord {
  readonly name: string | null;
  readonly row: number;
  readonly line: number;
}

/** Finds, for each name, the record of the chunk that had the last word: the latest of the latest time. */
export async function findRecords(
  files: Pick<FileStore, 'readRange'>,
  { source, chunk, refused, entity, id, names }: SoughtRecords,
): Promise<FoundRecord[]> {
  const reader = createChunkReader(source, files, hiddenValues);
  const rows = await reader.read(chunk, { hasDigests: false, isDated: true });
  const latest = new Map<string | null, ProfileRow>();
  for (const row of rows.profiles(entity)) {
    if (row.key !== id || refused.has(chunk.firstRow + row.record)) continue;
    const own = Object.keys(JSON.parse(row.properties) as object);
    for (const name of row.company === null ? own : [...own, null]) {
      const last = latest.get(name);
      if (last === undefined || isLater(row, last, source.acceptedAt)) latest.set(name, row);
    }
  }
  return names.flatMap((name) => {
    const record = latest.get(name)?.record;
    if (record === undefined) return [];
    const { lines } = rows.records.written ?? rows.records;
    return [{ name, row: chunk.firstRow + record, line: chunk.firstLine + (lines[record] ?? 0) }];
  });
}

function isLater(one: ProfileRow, other: ProfileRow, acceptedAt: string): boolean {
  const [at, otherAt] = [one.at ?? acceptedAt, other.at ?? acceptedAt];
  return at === otherAt ? one.record > other.record : at > otherAt;
}
