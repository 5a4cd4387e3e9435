import { expect } from 'vitest';
import { kindOf, kinds, type RecordSender } from '../servers/record-sender.ts';
import type { Sql } from '../servers/site.ts';

/**
 * Counts the stored rows by the id in their metadata. Only the sender sets this id. Loads do not.
 */
const storedIds = `
  select metadata ->> 'id' as id, count(*)::int as times
  from (
    select metadata from sluice.events
    union all select metadata from sluice.users
    union all select metadata from sluice.companies
  ) records
  where metadata ? 'id'
  group by 1`;

/**
 * Finds event ids that are stored without their event. The service would refuse such an event
 * forever.
 */
const orphanedIds =
  'select user_id, event_id from sluice.event_ids except select user_id, event_id from sluice.events';

/** Finds batches with only one of their two items stored. */
const halfBatches = `
  select coalesce(e.event_id, u.user_id) as id
  from (select event_id from sluice.events where event_id like 'batch-%') e
  full join (select user_id from sluice.users where metadata ? 'batch') u on u.user_id = e.event_id
  where e.event_id is null or u.user_id is null`;

/**
 * Expects that each accepted record is stored once, each refused or unanswered record at most once,
 * and no other record.
 */
export async function expectEachOnce(sql: Sql, { answers }: RecordSender) {
  const rows = await sql<{ id: string; times: number }>(storedIds);
  const stored = new Map(rows.map(({ id, times }) => [id, times]));
  const sent = [...answers];
  const answered = (wanted: number | null): string[] =>
    sent.flatMap(([id, status]) => (status === wanted ? [id] : []));
  const accepted = answered(202);
  const refused = answered(503);
  const unanswered = answered(null);
  expect(accepted.length + refused.length + unanswered.length, 'no answers but 202 and 503').toBe(
    sent.length,
  );
  const some = (ids: readonly string[]): object => ({ count: ids.length, first: ids.slice(0, 10) });
  expect({
    lost: some(accepted.filter((id) => !stored.has(id))),
    twice: some([...stored].flatMap(([id, times]) => (times > 1 ? [id] : []))),
    neverSent: some([...stored.keys()].filter((id) => !answers.has(id))),
    orphaned: await sql(orphanedIds),
    halfStored: await sql(halfBatches),
    kinds: new Set(accepted.map(kindOf)),
  }).toEqual({
    lost: some([]),
    twice: some([]),
    neverSent: some([]),
    orphaned: [],
    halfStored: [],
    kinds: new Set(kinds),
  });
  return { accepted: accepted.length, refused: refused.length, unanswered: unanswered.length };
}
