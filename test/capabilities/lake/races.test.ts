import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { appendEvents } from '../../../src/capabilities/lake/append-events.ts';
import { removeReplaced } from '../../../src/capabilities/lake/commit.ts';
import type { FileStore } from '../../../src/files/file-store.ts';
import { pruneEvents } from '../../../src/jobs/prune-events.ts';
import { expireLeases, loadFile, withoutQueue } from '../../support/files/load-file.ts';
import { insertEvents } from '../../support/oracles/retention.ts';
import { acceptDeletion } from '../../support/servers/deletions.ts';
import { openTestSystem, type TestSystem } from '../../support/servers/system.ts';
import { undo } from '../undo/support/undo.ts';
import {
  addEvents,
  expectNamedFiles,
  expectSame,
  filesWith,
  mortalSystem,
  readEverywhere,
} from './support/lake.ts';

let t: TestSystem;
let environmentId: number;
beforeEach(async () => {
  t = await openTestSystem({ settings: { EVENT_RETENTION_DAYS: '100', LAKE_EVERY: '1h' } });
  environmentId = t.environment.environmentId;
});
afterEach(() => t.close());

const everywhere = () => readEverywhere(t.system, environmentId);

/** Returns a store that calls `happens` once, when the first written file is being checked. */
function storeWith(happens: () => Promise<unknown>): FileStore {
  let isDue = true;
  return {
    ...t.system.files,
    async size(ref) {
      if (isDue) {
        isDue = false;
        await happens();
      }
      return t.system.files.size(ref);
    },
  };
}

/**
 * The test simulates a crash at every 71st of about 150 steps. A large run simulates a crash at
 * every step.
 */
const stride = process.env['SLUICE_LARGE'] === '1' ? 1 : 71;

// proves: lake-erasure
test('a pruning or deletion that dies at any step removes the person, and nobody else', async () => {
  let hasSurvived = false;
  for (let dieAt = 1; !hasSurvived; dieAt += stride) {
    const doomed = `doomed-${dieAt}`;
    await addEvents(t, [0, 1, 7], 3);
    await addEvents(t, [0, 7], 1, { user: doomed });
    await pruneEvents(mortalSystem(t, dieAt).context).catch(() => undefined);
    await pruneEvents(t.system);
    await expectSame(t);

    const deletion = await acceptDeletion(t.system, environmentId, 'users', [doomed]);
    const mortal = mortalSystem(t, dieAt);
    await deletion.run(withoutQueue(mortal.context)).catch(() => undefined);
    hasSurvived = mortal.isAlive();
    await expireLeases(t.system);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(await deletion.outcomes()).toEqual({ [doomed]: ['deleted', 2, 0] });
    expect((await expectSame(t)).filter(({ user_id }) => user_id === doomed)).toEqual([]);
    await removeReplaced(t.system);
    expect(await filesWith(t, doomed)).toEqual([]);
  }
  // Makes the files two days older.
  await sql`update lake_files set created_at = created_at - interval '2 days'`.execute(t.system.db);
  await pruneEvents(t.system);
  await expectNamedFiles(t);
});

// proves: lake-appends
test('a load that is undone during an append leaves the lake with the next append', async () => {
  await addEvents(t, [0], 5);
  await appendEvents(t.system);
  const line = (n: number) =>
    `${JSON.stringify({ event_type: 'track', user_id: 'u1', event_name: 'seen', event_id: `of-load-${n}` })}\n`;
  const { jobId } = await loadFile(t.system, environmentId, [1, 2, 3].map(line).join(''));
  await appendEvents({ ...t.system, files: storeWith(() => undo(t.system, environmentId, [jobId])) });
  expect(await everywhere()).toHaveLength(5);
  await addEvents(t, [0], 2);
  await appendEvents(t.system);
  expect(await expectSame(t)).toHaveLength(7);
});

// proves: lake-appends
test('a load that is undone and loaded again is in the lake once', async () => {
  const lines = Array.from({ length: 100 }, (_, n) =>
    JSON.stringify({ event_type: 'track', user_id: 'u1', event_name: 'seen', event_id: `again-${n}` }),
  ).join('\n');
  const { jobId } = await loadFile(t.system, environmentId, lines);
  await appendEvents(t.system);
  expect(await expectSame(t)).toHaveLength(100);
  await undo(t.system, environmentId, [jobId]);
  await loadFile(t.system, environmentId, lines);
  await appendEvents(t.system);
  expect(await expectSame(t)).toHaveLength(100);
});

// proves: lake
test('moved events that are sent again are in the lake once, beside late events', async () => {
  const events = await addEvents(t, [7, 8], 20, { named: true });
  await pruneEvents(t.system);
  const rowsOnce = await expectSame(t);
  const repeatedEvents = events.slice(0, 30);
  await insertEvents(t, repeatedEvents);
  const lateEvents = await addEvents(t, [7], 3);
  expect(await everywhere()).toHaveLength(rowsOnce.length + repeatedEvents.length + lateEvents.length);
  await pruneEvents(t.system);
  expect(await expectSame(t)).toHaveLength(rowsOnce.length + lateEvents.length);
  expect((await sql`select from event_ids`.execute(t.system.db)).rows).toEqual([]);
});

// proves: lake-appends
test('an append is repeated after a deletion of another person', async () => {
  await addEvents(t, [0, 1], 5);
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['nobody']);
  await appendEvents({ ...t.system, files: storeWith(() => deletion.run()) });
  const { rows } = await sql`select from event_prunings where work = 'append' and error is not null`.execute(
    t.system.db,
  );
  expect(rows).toEqual([]);
  expect(await expectSame(t)).toHaveLength(10);
});

// proves: lake-erasure
test('a file of a person who was deleted before it was taken is removed at once', async () => {
  await addEvents(t, [7], 3);
  await addEvents(t, [7], 1, { user: 'doomed-person' });
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['doomed-person']);
  await pruneEvents({ ...t.system, files: storeWith(() => deletion.run()) });
  expect(await deletion.look()).toMatchObject({ status: 'completed' });
  expect(await filesWith(t, 'doomed-person')).toEqual([]);
});

// proves: lake-erasure
test('events that move to the lake during the deletion of their person are erased', async () => {
  const user = 'doomed-person';
  await addEvents(t, [7], 1, { user });
  await addEvents(t, [7], 3);
  await pruneEvents(t.system);
  await addEvents(t, [8], 1, { user });
  const deletion = await acceptDeletion(t.system, environmentId, 'users', [user]);
  const context = { ...t.system, files: storeWith(() => pruneEvents(t.system)) };
  expect(await deletion.run(withoutQueue(context))).toMatchObject({ status: 'completed' });
  expect(await everywhere()).toHaveLength(3);
  expect(await filesWith(t, user)).toEqual([]);
});
