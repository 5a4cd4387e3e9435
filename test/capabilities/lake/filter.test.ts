import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { findHolders } from '../../../src/capabilities/lake/file-store.ts';
import { bitsOf, IdFilter, MAX_LAKE_FILTER_BYTES } from '../../../src/capabilities/lake/id-filter.ts';
import { systemOfFile } from '../../support/servers/system.ts';
import { mayHold } from './support/lake-filter.ts';

const t = await systemOfFile();

async function addFile(name: string, users: readonly string[] | null) {
  const filter = new IdFilter();
  for (const id of users ?? []) filter.add('users', Buffer.from(id));
  const bytes = users && filter.bytes();
  const { rows } = await sql<{ fileId: number }>`
    insert into lake_files (environment_id, kind, file_ref, filter)
    values (${t.environment.environmentId}, 'data', ${name}, ${bytes})
    returning file_id as "fileId"`.execute(t.system.db);
  return { fileId: rows[0]?.fileId ?? Number.NaN, bytes };
}

// proves: lake-erasure
test('PostgreSQL finds the files that may have one of the ids, for any filter length', async () => {
  const idsOf = (count: number, from = 0) => Array.from({ length: count }, (_, n) => `user-ü ${from + n}`);
  // The files are not added in parallel: hashing a million ids blocks this process for so long that
  // a new database connection would time out.
  const files = [
    await addFile('small', idsOf(10)),
    await addFile('other', idsOf(1_000, 50)),
    await addFile('large', idsOf(1_000_000, 5_000)),
    await addFile('none', []),
    await addFile('unknown', null),
  ];
  expect(files[2]?.bytes?.length).toBe(MAX_LAKE_FILTER_BYTES);
  const holders = async (entity: 'users' | 'companies', ids: readonly string[]) => {
    const holderIds = await findHolders(t.system.db, files, bitsOf(entity, ids));
    return files.map(({ fileId }) => holderIds.has(fileId));
  };
  for (const id of [...idsOf(2), ...idsOf(4, 48), ...idsOf(4, 4_998), ...idsOf(4, 1_004_998)]) {
    const expectedHolders = files.map(({ bytes }) => bytes === null || mayHold(bytes, 'users', id));
    expect(await holders('users', [id])).toEqual(expectedHolders);
    expect(await holders('companies', [id])).toEqual(
      files.map(({ bytes }) => bytes === null || mayHold(bytes, 'companies', id)),
    );
  }
  expect(await holders('users', idsOf(1_000, 2_000_000).concat(idsOf(1)))).toMatchObject({
    0: true,
    3: false,
  });
  expect(await holders('users', [])).toEqual([false, false, false, false, true]);
  const otherHolders = await findHolders(t.system.db, files.slice(0, 1), bitsOf('users', idsOf(1, 50)));
  expect([...otherHolders]).toEqual([]);
});
