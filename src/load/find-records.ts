/* Which record of a file a value came from: its chunk is read once more, as the load read it. */
import type { Entity } from '../domain/entity.ts';
import type { ChunkRange } from '../domain/load.ts';
import type { FileStore } from '../files/file-store.ts';
import { escapeCopy, fromByteString, toByteString, unescapeCopy } from '../mapping/json-text.ts';
import type { Rows } from '../mapping/rows.ts';
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
  const latest = new Map<string | null, Written>();
  for (const written of rowsOf(rows, entity, id)) {
    if (refused.has(chunk.firstRow + written.record)) continue;
    for (const name of written.names) {
      const last = latest.get(name);
      if (last === undefined || isLater(written, last, source.acceptedAt)) latest.set(name, written);
    }
  }
  return names.flatMap((name) => {
    const record = latest.get(name)?.record;
    if (record === undefined) return [];
    const { lines } = rows.records.written ?? rows.records;
    return [{ name, row: chunk.firstRow + record, line: chunk.firstLine + (lines[record] ?? 0) }];
  });
}

interface Written {
  readonly record: number;
  /** `null` stands for the time at which the load was accepted. */
  readonly at: string | null;
  readonly names: readonly (string | null)[];
}

function isLater(one: Written, other: Written, acceptedAt: string): boolean {
  const [at, otherAt] = [one.at ?? acceptedAt, other.at ?? acceptedAt];
  return at === otherAt ? one.record > other.record : at > otherAt;
}

/** The rows of a profile, of the text that COPY reads. */
function* rowsOf({ dated }: Rows, entity: Entity, id: string): Generator<Written> {
  const key = escapeCopy(toByteString(id));
  for (let row = 0; row < dated[entity].rows; row++) {
    const line = dated[entity].line(row).toString('latin1');
    const [own, record, at = none, properties = '{}', company = none] = line.split('\t');
    if (own !== key) continue;
    const names = Object.keys(JSON.parse(fromByteString(unescapeCopy(properties))) as object);
    yield {
      record: Number(record),
      at: at === none ? null : at,
      names: company === none ? names : [...names, null],
    };
  }
}

const none = '\\N';
