import fc from 'fast-check';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { createEnvironment } from '../../src/access/environment-store.ts';
import { TookTooLong } from '../../src/base/errors.ts';
import { compileSegment } from '../../src/lookups/segments/compile-segment.ts';
import { readSegment } from '../../src/lookups/segments/read-segment.ts';
import type { Segment } from '../../src/lookups/segments/segment.ts';
import { previewSegment } from '../../src/profiles/segments-http.ts';
import { nextEnvironmentName } from '../support/files/load-file.ts';
import { conditionsOn, definition, now, storedValues, world } from '../support/oracles/random-segments.ts';
import {
  isInSegment,
  usersInSegment,
  type World,
  type WorldUser,
} from '../support/oracles/segment-evaluator.ts';
import { storeWorld } from '../support/oracles/store-world.ts';
import { runs } from '../support/runs.ts';
import { systemOfFile } from '../support/servers/system.ts';

/** On a failure, fast-check prints the seed and the smallest failing input. */
const parameters = { endOnFailure: false, interruptAfterTimeLimit: 150_000 } as const;

const t = await systemOfFile();

async function newEnvironment(content: World): Promise<number> {
  const { environmentId } = await createEnvironment(t.system.db, nextEnvironmentName());
  await storeWorld(t.system.db, environmentId, content);
  return environmentId;
}

function segmentOf(json: unknown): Segment {
  const { segment, problems } = readSegment(json);
  expect(problems).toEqual([]);
  if (segment === null) throw new Error('no segment and no problem');
  return segment;
}

const userAt = (userId: string, more: Partial<WorldUser> = {}): WorldUser => ({
  userId,
  companyId: null,
  metadata: new Map(),
  firstSeenAt: now.toISOString(),
  lastSeenAt: now.toISOString(),
  ...more,
});

async function usersOf(environmentId: number, json: unknown): Promise<string[]> {
  const rows = await t.system.db
    .selectFrom('users as u')
    .select('u.user_id')
    .where(compileSegment(segmentOf(json), { environmentId, now, user: 'u' }))
    .execute();
  return rows.map((row) => row.user_id).sort();
}

describe('a property', () => {
  /**
   * JSON values of the property. The test stores a user for each value, with the JSON as the user's
   * id, and one user without a value.
   */
  const values = [
    ...[
      '"pro"',
      '"Pro"',
      '"a pro%file"',
      '""',
      '"true"',
      'true',
      'false',
      '"12"',
      '"12.0"',
      '"012"',
      '12',
      '12.0',
      '1e2',
    ],
    ...[
      '"1e400"',
      '1e400',
      '"NaN"',
      '"Infinity"',
      '-0',
      '"2026-11-19"',
      '"2026-11-20"',
      '"2026-11-20T12:00:00.000001Z"',
    ],
    ...['"2026-11-20T12:00"', '"2026-02-30"', '["pro"]', '{"p": "pro"}', '[12]'],
  ];
  const users = [
    ...values.map((json) => userAt(json, { metadata: new Map([['p', json]]) })),
    userAt('missing'),
  ];
  const content: World = { users, companies: [], events: [], now };
  let environmentId: number;
  beforeAll(async () => {
    environmentId = await newEnvironment(content);
  });

  const allBut = (...excluded: string[]) =>
    users.map(({ userId }) => userId).filter((userId) => !excluded.includes(userId));

  test.each<[object, string[]]>([
    [{ equals: 'pro' }, ['"pro"']],
    [{ equals: '' }, ['""']],
    [{ equals: '12' }, ['"12"', '12', '12.0']],
    [{ equals: '12.0' }, ['"12.0"', '12', '12.0']],
    [{ equals: 12 }, ['"12"', '"12.0"', '12', '12.0']],
    [{ equals: 100 }, ['1e2']],
    [{ equals: -0 }, ['-0']],
    [{ equals: '1e400' }, ['"1e400"', '1e400']],
    [{ equals: 'NaN' }, ['"NaN"']],
    [{ equals: true }, ['"true"', 'true']],
    [{ equals: 'false' }, ['false']],
    [{ not_equals: 'pro' }, allBut('"pro"')],
    [{ not_equals: 12 }, allBut('"12"', '"12.0"', '12', '12.0')],
    [{ in: ['pro', 'Pro', 12, 'none', false] }, ['"pro"', '"Pro"', '"12"', '"12.0"', '12', '12.0', 'false']],
    [{ not_in: ['pro', 100] }, allBut('"pro"', '1e2')],
    [{ contains: 'pro' }, ['"pro"', '"a pro%file"']],
    [{ contains: '%' }, ['"a pro%file"']],
    [{ contains: '1' }, values.filter((json) => json.startsWith('"') && json.includes('1'))],
    [{ not_contains: 'pro' }, allBut('"pro"', '"a pro%file"')],
    [{ starts_with: 'p' }, ['"pro"']],
    [{ starts_with: '%' }, []],
    [{ exists: true }, values],
    [{ exists: false }, ['missing']],
    [{ greater_than: 12 }, ['1e2', '"1e400"', '1e400']],
    [{ greater_or_equal: 12 }, ['"12"', '"12.0"', '12', '12.0', '1e2', '"1e400"', '1e400']],
    [{ less_than: 12 }, ['-0']],
    [{ less_or_equal: 12 }, ['"12"', '"12.0"', '12', '12.0', '-0']],
    [{ greater_than: Number.MAX_VALUE }, ['"1e400"', '1e400']],
    [{ greater_than: '2026-11-19' }, values.filter((json) => json.startsWith('"2026-11-20'))],
    [{ greater_or_equal: '2026-11-20T12:00:00Z' }, ['"2026-11-20T12:00"', '"2026-11-20T12:00:00.000001Z"']],
    [{ greater_than: '2026-11-20T12:00:00Z' }, ['"2026-11-20T12:00:00.000001Z"']],
    [{ less_than: '2026-11-20' }, ['"2026-11-19"']],
    [{ less_or_equal: '2026-11-20' }, values.filter((json) => /^"2026-11/.test(json))],
    [{ less_or_equal: '2026-11-20T00:00' }, ['"2026-11-19"', '"2026-11-20"']],
    [{ in_last_days: 1 }, ['"2026-11-20"', '"2026-11-20T12:00"']],
    [{ not_in_last_days: 1 }, allBut('"2026-11-20"', '"2026-11-20T12:00"')],
  ])('a condition of %j matches the documented values', async (operator, expected) => {
    const json = { property: 'p', ...operator };
    expect(await usersOf(environmentId, json)).toEqual([...expected].sort());
    expect(usersInSegment(json, content)).toEqual([...expected].sort());
  });
});

test('a condition on any value follows the documentation, under any settings of the session', async () => {
  const property = fc.asyncProperty(storedValues, conditionsOn('p'), async (jsons, conditions) => {
    const users = jsons.map((json, index) => userAt(`u${index}`, { metadata: new Map([['p', json]]) }));
    const content: World = { users, companies: [], events: [], now };
    const environmentId = await newEnvironment(content);
    await t.system.db.transaction().execute(async (session) => {
      await sql`set local timezone to 'America/St_Johns'`.execute(session);
      await sql`set local datestyle to 'SQL, DMY'`.execute(session);
      for (const json of conditions) {
        const rows = await session
          .selectFrom('users as u')
          .select('u.user_id')
          .where(compileSegment(segmentOf(json), { environmentId, now, user: 'u' }))
          .execute();
        const matches = new Set(rows.map((row) => row.user_id));
        // If the test fails, its message lists the stored values of these users.
        const wrong = users
          .filter((user) => matches.has(user.userId) !== isInSegment(json, user, content))
          .map(({ userId, metadata }) => ({ stored: metadata.get('p'), isMatch: matches.has(userId) }));
        expect({ json, wrong }).toEqual({ json, wrong: [] });
      }
    });
  });
  await fc.assert(property, { ...parameters, numRuns: runs(200) });
});

test('a segment of a random world has the documented users, and no user of another environment', async () => {
  const property = fc.asyncProperty(
    world,
    world,
    fc.array(definition, { minLength: 1, maxLength: 8 }),
    async (content, other, definitions) => {
      const environmentId = await newEnvironment(content);
      await newEnvironment(other);
      for (const json of definitions) {
        const segment = segmentOf(json);
        const scope = { environmentId, now };
        const expected = content.users.map((user) => ({
          environment_id: environmentId,
          user_id: user.userId,
          holds: isInSegment(json, user, content),
        }));
        // The result is true or false, but never null. For users of another environment, it is
        // false.
        const rows = await t.system.db
          .selectFrom('users as u')
          .select(['u.environment_id', 'u.user_id'])
          .select(sql<boolean>`${compileSegment(segment, { ...scope, user: 'u' })}`.as('holds'))
          .where('u.environment_id', '>=', environmentId)
          .execute();
        const rowsHere = rows.filter((row) => row.environment_id === environmentId);
        expect(new Set(rowsHere)).toEqual(new Set(expected));
        expect(rows.filter((row) => row.environment_id !== environmentId && row.holds !== false)).toEqual([]);
        // If the segment is a condition of a query, PostgreSQL plans the segment as joins. The
        // joins must select the same users.
        expect(await usersOf(environmentId, json)).toEqual(usersInSegment(json, content));
      }
    },
  );
  await fc.assert(property, { ...parameters, numRuns: runs(250) });
});

test('the statement of a segment has nothing of its definition, and all of its parameters are texts', () => {
  const marked = (json: unknown): unknown =>
    JSON.parse(JSON.stringify(json), function (this: object, key, value) {
      // Marks names and strings. Dates are not marked, because a marked date is invalid.
      const isDate = /^(greater|less)/.test(key);
      return typeof value === 'string' && !isDate ? `⟦${value}` : value;
    });
  fc.assert(
    fc.property(definition, (json) => {
      const segment = segmentOf(marked(json));
      const scope = { environmentId: 918_273, now };
      const query = t.system.db
        .selectFrom('users as u')
        .selectAll()
        .where(compileSegment(segment, { ...scope, user: 'u' }))
        .compile();
      expect(query.sql).not.toMatch(/⟦|918273|2026|e\+|e-/);
      expect(query.parameters.filter((parameter) => typeof parameter !== 'string')).toEqual([]);
    }),
    { numRuns: runs(500) },
  );
});

describe('a preview', () => {
  test('a preview gives up when it takes too long, and leaves the session unchanged', async () => {
    const users = Array.from({ length: 200 }, (_, index) =>
      userAt(`u${index}`, { metadata: new Map([['p', JSON.stringify('9'.repeat(30_000))]]) }),
    );
    const environmentId = await newEnvironment({ users, companies: [], events: [], now });
    const any = Array.from({ length: 99 }, () => ({ property: 'p', contains: 'x'.repeat(100) }));
    const segment = segmentOf({ any });
    const limits = { sample: 0, timeoutMs: 1, signal: new AbortController().signal };
    await expect(previewSegment(t.system, environmentId, segment, limits)).rejects.toBeInstanceOf(
      TookTooLong,
    );
    const { rows } = await sql<{ timeout: string }>`
      select current_setting('statement_timeout') as timeout`.execute(t.system.db);
    expect(rows).toEqual([{ timeout: '0' }]);
  });
});
