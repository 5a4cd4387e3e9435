import fc from 'fast-check';
import { expect, test } from 'vitest';
import { liftSuppressions } from '../../../src/capabilities/suppression/store.ts';
import type { BatchItem, ItemRecord } from '../../../src/ingest/records.ts';
import { acceptDeletion, readStored } from '../../support/deletions.ts';
import { newEnvironment, runAtOnce, shuffled, startManually, withoutQueue } from '../../support/load-file.ts';
import { runs } from '../../support/runs.ts';
import { systemOfFile } from '../../support/system.ts';
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

/** Who is kept out, and what is stored of whom. */
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

let last = 0;

/** A record with its line in a file; `event` is its id if it is an event. */
function makeRecord(environmentId: number, { id: userId, is }: Item) {
  const at = ++last;
  const shared = { environmentId, userId, companyId: null, marked: false, bytes: 10 };
  if (is === 'user' || is === 'dated') {
    const time = '2026-01-01T00:00:00.000000Z';
    const dated = is === 'dated' ? { at: { text: time, ms: Date.parse(time) } } : {};
    const record = { ...shared, ...dated, properties: { at }, company: {} };
    const line = { user_id: userId, metadata: { at }, ...(is === 'dated' && { at: time }) };
    return { record: { entity: 'users', record } as ItemRecord, event: null, line };
  }
  const event = `e${at}`;
  const given = is === 'event' ? { event_id: event } : {};
  const record = { ...shared, eventName: event, eventId: is === 'event' ? event : null, insertedAt: null };
  return {
    record: { entity: 'events', record: { ...record, metadata: {} } } as ItemRecord,
    event,
    line: { event_type: 'track', user_id: userId, event_name: event, ...given },
  };
}

// proves: suppressed
test('nobody who is kept out is stored, and everybody else is, whatever is loaded, sent, deleted, lifted and undone', async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 10 }), async (steps) => {
    const quiet = withoutQueue(t.system);
    const environmentId = await newEnvironment(t.system);
    const oracle = new Oracle();
    const loads: string[] = [];
    const stored = async () => {
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
    for (const each of steps) {
      if (each.does === 'delete') {
        const deletion = await acceptDeletion(quiet, environmentId, 'users', [each.id], { suppress: true });
        const late = each.late.map((one) => ({ ...one, id: each.id }));
        const [done] = await Promise.all([
          deletion.run(),
          Promise.allSettled(late.map((one) => send(makeRecord(environmentId, one).record))),
        ]);
        expect(done.status).toBe('completed');
        oracle.keepOut(each.id);
      } else if (each.does === 'lift') {
        const lifted = await liftSuppressions(t.system.db, environmentId, [each.id]);
        expect(lifted).toBe(oracle.suppressed.delete(each.id) ? 1 : 0);
      } else if (!('items' in each)) {
        const jobId = loads.pop();
        if (jobId === undefined) continue;
        await undo(quiet, environmentId, [jobId]);
        // What an undo leaves of others is not the subject.
        const { users, events } = await stored();
        oracle.users = new Set(users);
        oracle.events = events;
      } else {
        const made = each.items.map((one) => ({ id: one.id, ...makeRecord(environmentId, one) }));
        const taken = made.filter((one) => !oracle.suppressed.has(one.id));
        if (each.does === 'load') {
          const content = `${made.map(({ line }) => JSON.stringify(line)).join('\n')}\n`;
          const load = await startManually(quiet, environmentId, content, { chunkBytes: 60, entity: 'auto' });
          const done = await runAtOnce(load, shuffled(load, each.ranks), 2);
          expect(done.status).toBe(taken.length === 0 ? 'failed' : 'completed');
          expect(done.tally.rejected).toBe(made.length - taken.length);
          if (taken.length > 0) loads.push(done.jobId);
        } else if (each.does === 'batch') {
          const items = made.map(({ record }, index): BatchItem => ({ index, ...record }));
          const { ingest } = t.system;
          const answer = await ingest.batch(environmentId, async () => ({ items, rejected: [] }), 10, null);
          expect(answer.rejected.map(({ index }) => made[index])).toEqual(
            made.filter((one) => !taken.includes(one)),
          );
        } else {
          const answers = await Promise.allSettled(made.map(({ record }) => send(record)));
          expect(answers.map(({ status }) => status === 'fulfilled')).toEqual(
            made.map((one) => taken.includes(one)),
          );
        }
        for (const one of taken) oracle.take(one.id, one.event);
      }
      const found = await stored();
      for (const one of oracle.suppressed) {
        expect(found.users).not.toContain(one);
        expect([...found.events.values()]).not.toContain(one);
      }
      expect(found.users).toEqual([...oracle.users].sort());
      expect(new Map([...found.events].sort())).toEqual(new Map([...oracle.events].sort()));
    }
  });
  await fc.assert(property, { numRuns: runs(30) });
});
