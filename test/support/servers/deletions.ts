import { sql } from 'kysely';
import { deletionJob } from '../../../jobs/kinds.ts';
import { requestDeletion, requireDeletion } from '../../../src/deletion/deletions.ts';
import type { DeletionContext } from '../../../src/deletion/seam.ts';
import { type Deletion, readOutcomes } from '../../../src/deletion/store.ts';
import type { Entity } from '../../../src/domain/entity.ts';
import { startLane } from '../../../src/load/end.ts';
import { runTaskOf, withoutQueue } from '../files/load-file.ts';

/** A deletion that only the test runs. */
interface ManualDeletion {
  readonly jobId: string;
  run(context?: DeletionContext, stopping?: AbortSignal): Promise<Deletion>;
  look(): Promise<Deletion>;
  /** For each id, returns its outcome and the numbers of removed events and users. */
  outcomes(): Promise<Record<string, readonly [outcome: string, events: number, users: number]>>;
}

export async function acceptDeletion(
  base: DeletionContext,
  environmentId: number,
  entity: Entity,
  ids: readonly string[],
  {
    purgeExports = false,
    suppress = false,
  }: { readonly purgeExports?: boolean; readonly suppress?: boolean } = {},
): Promise<ManualDeletion> {
  const quiet = withoutQueue(base);
  const request = { ids, purgeExports, options: { suppress } };
  const jobId = await requestDeletion(quiet, environmentId, entity, request);
  const look = () => requireDeletion(quiet, environmentId, jobId);
  await startLane(quiet, environmentId);
  return {
    jobId,
    look,
    async run(context = quiet, stopping = new AbortController().signal) {
      const { deletionId } = await look();
      await runTaskOf(context, deletionJob, deletionId, 0, {
        stopping,
        deadline: new AbortController().signal,
      });
      return look();
    },
    async outcomes() {
      const { deletionId } = await look();
      const rows = await readOutcomes(quiet.db, deletionId, 0, 100_000);
      return Object.fromEntries(rows.map(({ id, outcome, events, users }) => [id, [outcome, events, users]]));
    },
  };
}

/** Stores events of users. `day` is a date such as `2026-09-30`. */
export async function insertEvents(
  { db }: DeletionContext,
  environmentId: number,
  events: readonly {
    readonly id: string;
    readonly user: string;
    readonly company?: string;
    readonly day: string;
  }[],
): Promise<void> {
  for (const day of new Set(events.map((event) => event.day))) {
    await sql`select ensure_events_partition(${day}::timestamptz)`.execute(db);
  }
  const rows = events.map(({ id, user, company = null, day }) => ({ id, user, company, day }));
  await sql`
    with given as (
      select *
      from json_to_recordset(${JSON.stringify(rows)}) as g (id text, "user" text, company text, day timestamptz)
    ),
    ids as (
      insert into event_ids (environment_id, event_id, user_id, inserted_at)
      select ${environmentId}, id, "user", day from given
    )
    insert into events (environment_id, event_id, event_name, user_id, company_id, source, inserted_at)
    select ${environmentId}, id, 'seen', "user", company, 'backend-http', day
    from given`.execute(db);
}

/**
 * Returns the ids of all stored profiles and events of an environment, and its stored event ids.
 */
export async function readStored({ db }: DeletionContext, environmentId: number) {
  const all = async (query: ReturnType<typeof sql<{ row: string }>>) =>
    (await query.execute(db)).rows.map(({ row }) => row);
  const condition = sql`where environment_id = ${environmentId} order by 1`;
  return {
    users: await all(
      sql`select user_id || coalesce(' of ' || company_id, '') as row from users ${condition}`,
    ),
    companies: await all(sql`select company_id as row from companies ${condition}`),
    events: await all(
      sql`select event_id || ' by ' || user_id || coalesce(' of ' || company_id, '') as row from events ${condition}`,
    ),
    eventIds: await all(sql`select event_id as row from event_ids ${condition}`),
  };
}
