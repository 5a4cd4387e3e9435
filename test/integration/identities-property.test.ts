import fc from 'fast-check';
import { sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import { expect, test } from 'vitest';
import { addAlias } from '../../src/load/undo/add-alias.ts';
import { acceptDeletion } from '../support/deletions.ts';
import {
  newEnvironment,
  readProfiles,
  runAtOnce,
  shuffled,
  startManually,
  withoutQueue,
} from '../support/load-file.ts';
import { runs } from '../support/runs.ts';
import { systemOfFile } from '../support/system.ts';
import { runJob, undo } from '../support/undo.ts';

const t = await systemOfFile();

const id = fc.constantFrom('a', 'b', 'c', 'd');

interface Item {
  readonly id: string;
  /** The record is an event, or sets this property. */
  readonly name: string | null;
}

const item: fc.Arbitrary<Item> = fc.record({ id, name: fc.constantFrom(null, 'x', 'y') });

type Step =
  | {
      readonly does: 'alias';
      readonly alias: string;
      readonly user: string;
      readonly merge: boolean;
      readonly joins: boolean;
    }
  | { readonly does: 'load' | 'batch'; readonly items: readonly Item[]; readonly ranks: readonly number[] }
  | { readonly does: 'undo' }
  | { readonly does: 'undo load'; readonly which: number }
  | { readonly does: 'delete'; readonly id: string };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant('alias' as const),
      alias: id,
      user: id,
      merge: fc.boolean(),
      joins: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constantFrom('load' as const, 'batch' as const),
      items: fc.array(item, { minLength: 1, maxLength: 6 }),
      ranks: fc.array(fc.nat(), { minLength: 6, maxLength: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('undo' as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('undo load' as const), which: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('delete' as const), id }) },
);

/** A value and who set it: a load, a join or, without a name, anybody else. */
interface Setting {
  readonly by: string;
  readonly value: number;
}

/** All settings of each property that count, the last one behind. */
interface Profile {
  readonly properties: Map<string, Setting[]>;
  /** Who has written it. */
  writers: string[];
  seen: number;
}

const valuesOf = ({ properties }: Profile): Record<string, number> =>
  Object.fromEntries(
    Array.from(properties).flatMap(([name, settings]) =>
      settings.slice(-1).map(({ value }) => [name, value]),
    ),
  );

/** Aliases by union-find without a tree: each id names its person. Each value says how it came. */
class Oracle {
  person = new Map<string, string>();
  profiles = new Map<string, Profile>();
  events = new Map<string, { readonly by: string; person: string }>();

  personOf(of: string): string {
    const next = this.person.get(of);
    return next === undefined ? of : this.personOf(next);
  }

  link(alias: string, user: string, merge: boolean): 'made' | 'known' | 'taken' {
    const [from, to] = [this.personOf(alias), this.personOf(user)];
    if (from === to) return 'known';
    if (from !== alias && !merge) return 'taken';
    this.person.set(from, to);
    return 'made';
  }

  take({ id: of, name }: Item, value: number, by: string): void {
    const person = this.personOf(of);
    if (name === null) this.events.set(`e${value}`, { by, person });
    else this.#set(person, name, { by, value }).seen = value;
  }

  #profile(person: string): Profile {
    const profile = this.profiles.get(person) ?? { properties: new Map(), writers: [], seen: 0 };
    this.profiles.set(person, profile);
    return profile;
  }

  #set(person: string, name: string, setting: Setting): Profile {
    const profile = this.#profile(person);
    profile.properties.set(name, [...(profile.properties.get(name) ?? []), setting]);
    profile.writers.push(setting.by);
    return profile;
  }

  /** The own values win; of several aliases those of the one that was seen last. The join has set what it moved. */
  join(given: ReadonlyMap<string, string>, by: string): void {
    const target = (of: string): string => (given.has(of) ? target(given.get(of) ?? of) : of);
    const seenOf = (of: string) => this.profiles.get(of)?.seen ?? 0;
    const moved = [...given.keys()]
      .sort((a, b) => seenOf(b) - seenOf(a))
      .flatMap((alias) => {
        const profile = this.profiles.get(alias);
        this.profiles.delete(alias);
        for (const event of this.events.values()) if (event.person === alias) event.person = target(alias);
        return profile === undefined ? [] : [{ person: target(alias), profile }];
      });
    for (const { person, profile } of moved) {
      const own = this.#profile(person);
      own.writers.push(by);
      own.seen = Math.max(own.seen, profile.seen);
      for (const [name, value] of Object.entries(valuesOf(profile)))
        if (!(name in valuesOf(own))) this.#set(person, name, { by, value });
    }
  }

  /** Each value is the one that was set last by who counts; what a join has moved is the join's. */
  undo(load: string, at: number): void {
    for (const [event, { by }] of this.events) if (by === load) this.events.delete(event);
    for (const [id, profile] of this.profiles) {
      const before = JSON.stringify(valuesOf(profile));
      for (const [name, settings] of profile.properties)
        profile.properties.set(
          name,
          settings.filter(({ by }) => by !== load),
        );
      profile.writers = profile.writers.filter((by) => by !== load);
      if (profile.writers.length === 0) this.profiles.delete(id);
      else if (JSON.stringify(valuesOf(profile)) !== before) profile.seen = at;
    }
  }

  delete(of: string): void {
    const person = this.personOf(of);
    const ids = [...this.person.keys(), person].filter((each) => this.personOf(each) === person);
    for (const [event, { person: own }] of this.events) if (own === person) this.events.delete(event);
    for (const each of ids) {
      this.profiles.delete(each);
      this.person.delete(each);
    }
  }
}

// proves: identities, alias-of-one
test('after any aliases, merges, files, batches, joins, deletions and undos, each id has one person, with all that came under any id', async () => {
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 3, maxLength: 9, size: 'max' }),
    async (steps) => {
      const environmentId = await newEnvironment(t.system);
      const quiet = withoutQueue(t.system);
      const oracle = new Oracle();
      let value = 0;
      let loads: string[] = [];
      const waiting = new Map<string, Map<string, string>>();
      let done: {
        readonly jobId: string;
        readonly given: ReadonlyMap<string, string>;
        readonly before: Oracle;
      }[] = [];
      const join = async (): Promise<void> => {
        for (const [jobId, given] of waiting) {
          const before = Object.assign(new Oracle(), structuredClone({ ...oracle }));
          const joined = await runJob(quiet, environmentId, jobId);
          expect(joined).toMatchObject({ status: 'completed', tally: { rejected: 0 } });
          oracle.join(given, jobId);
          done.push({ jobId, given, before });
        }
        waiting.clear();
      };
      for (const each of steps) {
        if (each.does === 'alias') {
          const { alias, user, merge, joins } = each;
          const asked = {
            jobId: uuidv7(),
            requestId: null,
            origin: { kind: 'command_line', name: null },
          } as const;
          const made = await addAlias(quiet, environmentId, { alias, userId: user }, merge, asked).catch(
            () => null,
          );
          const [from, to] = [oracle.personOf(alias), oracle.personOf(user)];
          const expected = oracle.link(alias, user, merge);
          expect(made === null ? 'taken' : made.is_new ? 'made' : 'known').toBe(expected);
          if (made?.job_id != null) {
            const given = waiting.get(made.job_id) ?? new Map<string, string>();
            waiting.set(made.job_id, given.set(from, to));
          }
          if (joins) await join();
          continue;
        }
        if (each.does === 'undo') {
          const newest = waiting.size === 0 ? done.pop() : undefined;
          if (newest === undefined) continue;
          const undone = await undo(quiet, environmentId, [newest.jobId]);
          expect(undone).toMatchObject({ status: 'completed', tally: { rejected: 0 } });
          for (const alias of newest.given.keys()) oracle.person.delete(alias);
          Object.assign(oracle, { ...newest.before, person: oracle.person });
          continue;
        }
        if (each.does === 'undo load') {
          await join();
          const jobId = loads[each.which % loads.length];
          if (jobId === undefined) continue;
          loads = loads.filter((load) => load !== jobId);
          expect(await undo(quiet, environmentId, [jobId])).toMatchObject({ status: 'completed' });
          const at = ++value;
          for (const one of [oracle, ...done.map(({ before }) => before)]) one.undo(jobId, at);
          continue;
        }
        if (each.does === 'delete') {
          await join();
          const deletion = await acceptDeletion(t.system, environmentId, 'users', [each.id]);
          expect((await deletion.run()).status).toBe('completed');
          oracle.delete(each.id);
          done = [];
          continue;
        }
        let by = '';
        const numbered = each.items.map((one) => ({ ...one, value: ++value }));
        if (each.does === 'load') {
          await join();
          const lines = numbered.map(({ id: user_id, name, value: at }) =>
            JSON.stringify(
              name === null
                ? { event_type: 'track', user_id, event_name: 'e', event_id: `e${at}` }
                : { event_type: 'identify_user', user_id, metadata: { [name]: at } },
            ),
          );
          const load = await startManually(quiet, environmentId, `${lines.join('\n')}\n`, { chunkBytes: 60 });
          expect((await runAtOnce(load, shuffled(load, each.ranks), 2)).status).toBe('completed');
          by = load.jobId;
          loads.push(by);
        } else {
          const shared = { environmentId, companyId: null, marked: false, bytes: 10 };
          const items = numbered.map(({ id: userId, name, value: at }, index) =>
            name === null
              ? ({
                  index,
                  entity: 'events',
                  record: {
                    ...shared,
                    userId,
                    eventName: 'e',
                    eventId: `e${at}`,
                    insertedAt: null,
                    metadata: {},
                  },
                } as const)
              : ({
                  index,
                  entity: 'users',
                  record: { ...shared, userId, properties: { [name]: at }, company: {} },
                } as const),
          );
          const answer = await t.system.ingest.batch(
            environmentId,
            async () => ({ items, rejected: [] }),
            10,
            null,
          );
          expect(answer.accepted).toBe(items.length);
        }
        for (const one of numbered) oracle.take(one, one.value, by);
        // What is written to a person stays with the person.
        done = [];
      }
      await join();
      const { users } = await readProfiles(t.system, environmentId);
      const { rows } = await sql<{ id: string; user: string }>`
      select event_id as id, user_id as user from events where environment_id = ${environmentId}`.execute(
        t.system.db,
      );
      expect({
        users: Object.fromEntries(Object.entries(users).map(([key, { metadata }]) => [key, metadata])),
        events: Object.fromEntries(rows.map((row) => [row.id, row.user])),
      }).toEqual({
        users: Object.fromEntries(Array.from(oracle.profiles, ([key, profile]) => [key, valuesOf(profile)])),
        events: Object.fromEntries(Array.from(oracle.events, ([key, { person }]) => [key, person])),
      });
    },
  );
  await fc.assert(property, { numRuns: runs(40) });
});
