import fc from 'fast-check';
import { expect, test } from 'vitest';
import { liftSuppressions } from '../../../src/capabilities/suppression/store.ts';
import type { BatchItem, ItemRecord } from '../../../src/ingest/records.ts';
import {
  newEnvironment,
  runAtOnce,
  shuffled,
  startManually,
  withoutQueue,
} from '../../support/files/load-file.ts';
import { runs } from '../../support/runs.ts';
import { acceptDeletion, readStored } from '../../support/servers/deletions.ts';
import { systemOfFile } from '../../support/servers/system.ts';
import { undo } from '../undo/support/undo.ts';

const t = await systemOfFile();

const id = fc.constantFrom('a', 'b', 'c', 'd');
const item = fc.record({ id, is: fc.constantFrom('user', 'dated', 'event', 'unnamed event') });
type Item = typeof item extends fc.Arbitrary<infer T> ? T : never;

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constantFrom('load' as const, 'batch' as const, 'single' as const),
      items: fc.array(item, { minLength: 1, maxLength: 6 }),
      ranks: fc.array(fc.nat(), { minLength: 6, maxLength: 6 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant('delete' as const),
      id,
      late: fc.array(item, { maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom('lift' as const, 'undo' as const), id }) },
);

class Oracle {
  readonly suppressed = new Set<string>();
  users = new Set<string>();
  events = new Map<string, string>();

  take(of: string, event: string | null): void {
    if (event === null) this.users.add(of);
    else this.events.set(event, of);
  }

  keepOut(of: string): void {
    this.suppressed.add(of);
    this.users.delete(of);
    for (const [event, user] of this.events) if (this.suppressed.has(user)) this.events.delete(event);
  }
}

let lastRecord = 0;

/**
 * Returns a record of the item. `event` is the id of the item's event, or `null` if the item is a
 * profile.
 */
function makeRecord(environmentId: number, { id: userId, is }: Item) {
  const at = ++lastRecord;
  const shared = { environmentId, userId, companyId: null, marked: false, bytes: 10 };
  if (is === 'user' || is === 'dated') {
    const time = '2026-01-01T00:00:00.000000Z';
    const dated = is === 'dated' ? { at: { text: time, ms: Date.parse(time) } } : {};
    const record = { ...shared, ...dated, properties: { at }, company: {} };
    const line = { user_id: userId, metadata: { at }, ...(is === 'dated' && { at: time }) };
    return { record: { entity: 'users', record } as ItemRecord, event: null, line };
  }
  const event = `e${at}`;
  const idMember = is === 'event' ? { event_id: event } : {};
  const record = { ...shared, eventName: event, eventId: is === 'event' ? event : null, insertedAt: null };
  return {
    record: { entity: 'events', record: { ...record, metadata: {} } } as ItemRecord,
    event,
    line: { event_type: 'track', user_id: userId, event_name: event, ...idMember },
  };
}

// proves: suppressed
test('no suppressed person is stored, and all others are, after any actions', async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 10 }), async (steps) => {
    const quiet = withoutQueue(t.system);
    const environmentId = await newEnvironment(t.system);
    const oracle = new Oracle();
    const loads: string[] = [];
    const readAll = async () => {
      const { rows: events } = await t.system.pool.query<{ user: string; name: string }>(
        'select user_id as user, event_name as name from events where environment_id = $1',
        [environmentId],
      );
      const { users } = await readStored(t.system, environmentId);
      return { users, events: new Map(events.map(({ user, name }) => [name, user])) };
    };
    const send = ({ entity, record }: ItemRecord): Promise<void> => {
      if (entity === 'users') return t.system.ingest.identifyUser(record, null);
      return entity === 'events' ? t.system.ingest.track(record, null) : Promise.reject();
    };
    for (const action of steps) {
      if (action.does === 'delete') {
        const deletion = await acceptDeletion(quiet, environmentId, 'users', [action.id], { suppress: true });
        const lateItems = action.late.map((one) => ({ ...one, id: action.id }));
        const [ended] = await Promise.all([
          deletion.run(),
          Promise.allSettled(lateItems.map((one) => send(makeRecord(environmentId, one).record))),
        ]);
        expect(ended.status).toBe('completed');
        oracle.keepOut(action.id);
      } else if (action.does === 'lift') {
        const liftedCount = await liftSuppressions(t.system.db, environmentId, [action.id]);
        expect(liftedCount).toBe(oracle.suppressed.delete(action.id) ? 1 : 0);
      } else if (!('items' in action)) {
        const jobId = loads.pop();
        if (jobId === undefined) continue;
        await undo(quiet, environmentId, [jobId]);
        // This test does not predict how an undo affects other people. The oracle takes their state
        // from the database.
        const { users, events } = await readAll();
        oracle.users = new Set(users);
        oracle.events = events;
      } else {
        const records = action.items.map((one) => ({ id: one.id, ...makeRecord(environmentId, one) }));
        const accepted = records.filter((one) => !oracle.suppressed.has(one.id));
        if (action.does === 'load') {
          const content = `${records.map(({ line }) => JSON.stringify(line)).join('\n')}\n`;
          const load = await startManually(quiet, environmentId, content, { chunkBytes: 60, entity: 'auto' });
          const ended = await runAtOnce(load, shuffled(load, action.ranks), 2);
          expect(ended.status).toBe(accepted.length === 0 ? 'failed' : 'completed');
          expect(ended.tally.rejected).toBe(records.length - accepted.length);
          if (accepted.length > 0) loads.push(ended.jobId);
        } else if (action.does === 'batch') {
          const items = records.map(({ record }, index): BatchItem => ({ index, ...record }));
          const { ingest } = t.system;
          const answer = await ingest.batch(environmentId, async () => ({ items, rejected: [] }), 10, null);
          expect(answer.rejected.map(({ index }) => records[index])).toEqual(
            records.filter((one) => !accepted.includes(one)),
          );
        } else {
          const answers = await Promise.allSettled(records.map(({ record }) => send(record)));
          expect(answers.map(({ status }) => status === 'fulfilled')).toEqual(
            records.map((one) => accepted.includes(one)),
          );
        }
        for (const one of accepted) oracle.take(one.id, one.event);
      }
      const actual = await readAll();
      for (const one of oracle.suppressed) {
        expect(actual.users).not.toContain(one);
        expect([...actual.events.values()]).not.toContain(one);
      }
      expect(actual.users).toEqual([...oracle.users].sort());
      expect(new Map([...actual.events].sort())).toEqual(new Map([...oracle.events].sort()));
    }
  });
  await fc.assert(property, { numRuns: runs(30) });
});
