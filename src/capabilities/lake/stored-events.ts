import { createHash } from 'node:crypto';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { everything } from '../../domain/export.ts';
import { columnsOf } from '../../domain/export-columns.ts';
import { Gathered, type RowBlock, separator } from '../../export/write/rows.ts';
import type { FileStore } from '../../files/file-store.ts';
import type { WrittenFile } from './file-store.ts';
import { type LakeGroup, readGroups } from './read-events.ts';

/* Events in the files of the lake, as rows for exports and hashes. */

const columns = columnsOf('events', everything);

export interface Erasure {
  readonly entity: Entity;
  readonly ids: ReadonlySet<string>;
}

/** Returns the events of a row group as COPY values, without erased users and companies. */
export async function valuesOf(group: LakeGroup, erasure?: Erasure): Promise<RowBlock> {
  const isErased = (entity: Entity, id: string | null | undefined): boolean =>
    erasure?.entity === entity && erasure.ids.has(id ?? '');
  const texts = await Promise.all(
    columns.map(async ({ name, kind }) => {
      const values = await group.column(name);
      return values.map((value) => {
        if (value === null || (name === idColumn.companies && isErased('companies', value))) return '';
        return kind === 'text' ? JSON.stringify(value) : value;
      });
    }),
  );
  const users = await group.column(idColumn.users);
  const rows = new Gathered();
  for (let row = 0; row < group.rows; row++) {
    if (isErased('users', users[row])) continue;
    rows.addRow(Buffer.from(`${texts.map((column) => column[row]).join(separator)}\n`));
  }
  return rows.block();
}

/**
 * Returns the hash of all events in the files. For the same events, `hashPlan` returns the same
 * hash.
 * @throws LostLakeFile
 */
export async function contentOf(files: FileStore, data: readonly WrittenFile[]): Promise<string> {
  const hash = createHash('sha256');
  for (const file of data)
    for await (const group of readGroups(files, file)) hash.update((await valuesOf(group)).bytes);
  return hash.digest('hex');
}
