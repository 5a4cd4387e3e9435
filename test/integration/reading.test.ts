import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readSegment } from '../../src/lookups/segments/read-segment.ts';
import { listProfiles, type ProfileFilter, readPropertyFilter } from '../../src/profiles/profiles.ts';
import { closedGate } from '../support/servers/gate.ts';
import { serve, type TestServer } from '../support/servers/http.ts';
import { openTestSystem, type TestSystem } from '../support/servers/system.ts';

const users = 30_000;
let t: TestSystem;
let server: TestServer;
beforeAll(async () => {
  t = await openTestSystem();
  server = await serve(t);
  await t.system.pool.query(
    `insert into users (environment_id, user_id, metadata)
    select $1, 'u' || lpad(n::text, 6, '0'), jsonb_build_object('rare', n % 9973 = 0, 'size', n)
    from generate_series(1, $2) as n`,
    [t.environment.environmentId, users],
  );
  await t.system.pool.query('select sluice.ensure_events_partition(now())');
  await t.system.pool.query(
    `insert into events (environment_id, event_id, event_name, user_id, source, inserted_at)
    select $1, 'e' || n || '-' || time, 'ordered', 'u' || lpad(n::text, 6, '0'), 'test', now()
    from generate_series(1, $2) as n, generate_series(1, case when n % 9973 = 0 then 2 else 1 end) as time
    where n % 9973 = 0 or n % 1000 = 0`,
    [t.environment.environmentId, users],
  );
});
afterAll(async () => {
  await server?.stop();
  await t?.close();
});

const everything: ProfileFilter = { properties: [], companyId: null, segment: null };

describe('a search that no index helps', () => {
  const rare = ['u009973', 'u019946', 'u029919'];
  const filters: Readonly<Record<string, Partial<ProfileFilter>>> = {
    'a property': { properties: [readPropertyFilter('rare:true')] },
    'a segment': { segment: readSegment({ property: 'rare', equals: true }).segment },
    'a segment that counts events': { segment: readSegment({ event: 'ordered', at_least: 2 }).segment },
  };

  // proves: bounded-search
  test.each(Object.entries(filters))(
    'a search for %s ends a page when its time is over, and still reaches the end',
    async (_, filter) => {
      const keys: string[] = [];
      const sizes: number[] = [];
      let after: string | null = null;
      do {
        const { environmentId } = t.environment;
        const { profiles, next }: Awaited<ReturnType<typeof listProfiles>> = await listProfiles(
          t.system,
          'users',
          environmentId,
          { ...everything, ...filter },
          { limit: 50, after, budgetMs: 0 },
        );
        keys.push(...profiles.map(({ key }) => key));
        sizes.push(profiles.length);
        if (next !== null) expect(next > (after ?? '')).toBe(true);
        after = next;
      } while (after !== null);
      expect(keys).toEqual(rare);
      // Most pages must be empty and still have a next page.
      expect(sizes.length).toBeGreaterThan(10);
      expect(sizes.filter((size) => size === 0).length).toBeGreaterThan(8);
    },
  );

  // proves: bounded-search
  test('a search waits for its turn, while a profile, a page of profiles and events are read immediately', async () => {
    const { reader } = t.system;
    const gate = closedGate();
    const busy = Array.from({ length: 20 }, () => reader.inTurn(() => gate.pass()));
    let isDone = false;
    const search = server.fetch('/v1/users?property=rare:true').then((answer) => {
      isDone = true;
      return answer.status;
    });
    for (const path of ['/v1/users/u000001', '/v1/users?limit=5', '/v1/users/u000001/events']) {
      expect([path, (await server.fetch(path)).status]).toEqual([path, 200]);
    }
    expect(isDone).toBe(false);
    gate.open();
    await Promise.all(busy);
    expect(await search).toBe(200);
  });
});
