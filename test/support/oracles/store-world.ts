import { sql } from 'kysely';
import type { Database } from '../../../src/postgres/database.ts';
import type { Stored, World } from './segment-evaluator.ts';

export async function storeWorld(db: Database, environmentId: number, world: World): Promise<void> {
  const { users, companies, events } = world;
  const userRows = users.map((user) => ({ ...texts(user), id: user.userId, company: user.companyId }));
  const companyRows = companies.map((company) => ({ ...texts(company), id: company.companyId }));
  const eventRows = events.map((event, index) => ({
    ...texts(event),
    id: `e${index}`,
    at: event.at,
    called: event.name,
    user_id: event.userId,
  }));
  await sql`
    insert into users (environment_id, user_id, company_id, metadata, first_seen_at, last_seen_at)
    select ${environmentId}, id, company, metadata::jsonb, first, last
    from json_to_recordset(${JSON.stringify(userRows)})
      r (id text, company text, metadata text, first timestamptz, last timestamptz)`.execute(db);
  await sql`
    insert into companies (environment_id, company_id, metadata, first_seen_at, last_seen_at)
    select ${environmentId}, id, metadata::jsonb, first, last
    from json_to_recordset(${JSON.stringify(companyRows)})
      r (id text, metadata text, first timestamptz, last timestamptz)`.execute(db);
  for (const month of new Set(events.map(({ at }) => at.slice(0, 7)))) {
    await sql`select ensure_events_partition(${`${month}-01T00:00:00Z`}::timestamptz)`.execute(db);
  }
  await sql`
    insert into events (environment_id, event_id, event_name, user_id, source, inserted_at, metadata)
    select ${environmentId}, id, called, user_id, 'test', at, metadata::jsonb
    from json_to_recordset(${JSON.stringify(eventRows)})
      r (id text, called text, user_id text, at timestamptz, metadata text)`.execute(db);
}

interface Profile {
  readonly metadata: Stored;
  readonly firstSeenAt?: string;
  readonly lastSeenAt?: string;
}

/**
 * Returns a profile's values exactly as written, because JavaScript would reformat some numbers.
 */
function texts({ metadata, firstSeenAt, lastSeenAt }: Profile) {
  const members = Array.from(metadata, ([name, json]) => `${JSON.stringify(name)}:${json}`);
  return { metadata: `{${members.join(',')}}`, first: firstSeenAt, last: lastSeenAt };
}
