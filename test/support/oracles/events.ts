import type { LoadContext } from '../../../src/load/context.ts';

/** A stored event, without the fields whose values a test cannot know. */
export interface StoredEvent {
  readonly id: string;
  readonly type: string;
  readonly name: string;
  readonly user: string;
  readonly company: string | null;
  readonly source: string;
  /** Time of the event, in ISO 8601 in UTC with milliseconds. */
  readonly at: string;
  readonly metadata: unknown;
}

/** Returns the stored events of an environment, sorted by time and id. */
export async function readEvents({ db }: LoadContext, environmentId: number): Promise<StoredEvent[]> {
  const rows = await db
    .selectFrom('events')
    .selectAll()
    .where('environment_id', '=', environmentId)
    .orderBy('inserted_at')
    .orderBy('event_id')
    .execute();
  return rows.map((row) => ({
    id: row.event_id,
    type: row.event_type,
    name: row.event_name,
    user: row.user_id,
    company: row.company_id,
    source: row.source,
    at: row.inserted_at.toISOString(),
    metadata: row.metadata,
  }));
}
