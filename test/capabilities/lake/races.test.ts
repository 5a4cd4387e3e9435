import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { appendEvents } from '../../../src/capabilities/lake/append-events.ts';
import { removeReplaced } from '../../../src/capabilities/lake/commit.ts';
import type { System } from '../../../src/context.ts';
import type { FileStore } from '../../../src/files/file-store.ts';
import { pruneEvents } from '../../../src/jobs/prune-events.ts';
import { acceptDeletion } from '../../support/deletions.ts';
import { expireLeases, loadFile, withoutQueue } from '../../support/load-file.ts';
import { insertEvents, instantBetween, monthsAgo, type StoredEvent } from '../../support/retention.ts';
import { openTestSystem, type TestSystem } from '../../support/system.ts';
import { undo } from '../undo/support/undo.ts';
import {
  expectNamedFiles,
  filesWith,
  type LakeRow,
  mortalSystem,
  readEverywhere,
  readLake,
} from './support/lake.ts';

let t: TestSystem;
let environmentId: number;
let serial = 0;
beforeEach(async () => {
  t = await openTestSystem({ settings: { EVENT_RETENTION_DAYS: '100', LAKE_EVERY: '1h' } });
  environmentId = t.environment.environmentId;
});
afterEach(() => t.close());

/** Adds events in the months `ago`. */
async function add(ago: readonly number[], count: number, fields: Partial<StoredEvent> = {}) {
  const events = ago.flatMap((months) =>
    Array.from({ length: count }, () => ({
      ...{ environment: environmentId, id: `e${++serial}`, name: 'seen', user: `u${serial % 5}` },
      ...{ company: serial % 2 === 0 ? 'acme' : null, named: true, metadata: { n: serial } },
      at: instantBetween(
        monthsAgo(months),
        Math.min(monthsAgo(months - 1), Date.now()),
        (serial * 0.618) % 1,
      ),
      ...fields,
    })),
  );
  await insertEvents(t, events);
  return events;
}

const sorted = (rows: readonly LakeRow[]) =>
  [...rows].sort((a, b) => (a.event_id < b.event_id ? -1 : a.event_id > b.event_id ? 1 : 0));

const everywhere = (system: System = t.system) => readEverywhere(system, environmentId);

/** Checks that another reader finds exactly these events in the lake. */
async function expectSame(system: System = t.system): Promise<readonly LakeRow[]> {
  const rows = sorted(await readLake(system, 'default'));
  expect(rows).toEqual(sorted(await everywhere(system)));
  return rows;
}

/** A store that runs `happens` once: when the first written file is checked, before it is taken. */
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

/** One of about 150 steps in 29. A large run tries all. */
const stride = process.env['SLUICE_LARGE'] === '1' ? 1 : 29;

// proves: lake-erasure
test('a pruning or deletion that dies at any step removes the person, and only it', async () => {
  let hasSurvived = false;
  for (let dieAt = 1; !hasSurvived; dieAt += stride) {
    const doomed = `doomed-${dieAt}`;
    await add([0, 1, 7], 3);
    await add([0, 7], 1, { user: doomed });
    await pruneEvents(mortalSystem(t, dieAt).context).catch(() => undefined);
    await pruneEvents(t.system);
    await expectSame();

    const deletion = await acceptDeletion(t.system, environmentId, 'users', [doomed]);
    const mortal = mortalSystem(t, dieAt);
    await deletion.run(withoutQueue(mortal.context)).catch(() => undefined);
    hasSurvived = mortal.isAlive();
    await expireLeases(t.system);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(await deletion.outcomes()).toEqual({ [doomed]: ['deleted', 2, 0] });
    expect((await expectSame()).filter(({ user_id }) => user_id === doomed)).toEqual([]);
    await removeReplaced(t.system);
    expect(await filesWith(t, doomed)).toEqual([]);
  }
  // As a day later.
  await sql`update lake_files set created_at = created_at - interval '2 days'`.execute(t.system.db);
  await pruneEvents(t.system);
  await expectNamedFiles(t);
});

// proves: lake-appends
test('a load that is undone during an append leaves the lake with the next append', async () => {
  await add([0], 5);
  await appendEvents(t.system);
  const line = (n: number) =>
    `${JSON.stringify({ event_type: 'track', user_id: 'u1', event_name: 'seen', event_id: `of-load-${n}` })}\n`;
  const { jobId } = await loadFile(t.system, environmentId, [1, 2, 3].map(line).join(''));
  await appendEvents({ ...t.system, files: storeWith(() => undo(t.system, environmentId, [jobId])) });
  expect(await everywhere()).toHaveLength(5);
  await add([0], 2);
  await appendEvents(t.system);
  expect(await expectSame()).toHaveLength(7);
});

// proves: lake-appends
test('a load that is undone and loaded again is in the lake once', async () => {
  const lines = Array.from({ length: 100 }, (_, n) =>
    JSON.stringify({ event_type: 'track', user_id: 'u1', event_name: 'seen', event_id: `again-${n}` }),
  ).join('\n');
  const { jobId } = await loadFile(t.system, environmentId, lines);
  await appendEvents(t.system);
  expect(await expectSame()).toHaveLength(100);
  await undo(t.system, environmentId, [jobId]);
  await loadFile(t.system, environmentId, lines);
  await appendEvents(t.system);
  expect(await expectSame()).toHaveLength(100);
});

// proves: lake
test('moved events that are sent again are in the lake once, beside late events', async () => {
  const events = await add([7, 8], 20);
  await pruneEvents(t.system);
  const rowsOnce = await expectSame();
  const repeatedEvents = events.slice(0, 30);
  await insertEvents(t, repeatedEvents);
  const lateEvents = await add([7], 3);
  expect(await everywhere()).toHaveLength(rowsOnce.length + repeatedEvents.length + lateEvents.length);
  await pruneEvents(t.system);
  expect(await expectSame()).toHaveLength(rowsOnce.length + lateEvents.length);
  expect((await sql`select from event_ids`.execute(t.system.db)).rows).toEqual([]);
});

// proves: lake-appends
test('an append is repeated after a deletion of another person', async () => {
  await add([0, 1], 5);
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['nobody']);
  await appendEvents({ ...t.system, files: storeWith(() => deletion.run()) });
  const { rows } = await sql`select from event_prunings where work = 'append' and error is not null`.execute(
    t.system.db,
  );
  expect(rows).toEqual([]);
  expect(await expectSame()).toHaveLength(10);
});

// proves: lake-erasure
test('a file of a person who was deleted before it was taken is removed at once', async () => {
  await add([7], 3);
  await add([7], 1, { user: 'doomed-person' });
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['doomed-person']);
  await pruneEvents({ ...t.system, files: storeWith(() => deletion.run()) });
  expect(await deletion.look()).toMatchObject({ status: 'completed' });
  expect(await filesWith(t, 'doomed-person')).toEqual([]);
});
