import { type RawBuilder, sql } from 'kysely';
import type { Actor } from '../../domain/act.ts';
import { columnOf, type Database, escapeLike, prepared, rowsOf } from '../../postgres/database.ts';

export const entryOutcomes = ['done', 'refused'] as const;

export interface NewEntry {
  readonly environmentId: number | null;
  readonly action: string;
  readonly outcome: (typeof entryOutcomes)[number];
  readonly actorKind: Actor['kind'];
  readonly actorName: string | null;
  readonly sessionId: string | null;
  readonly address: string | null;
  readonly thing: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  /** True if equal acts within an hour share one entry. */
  readonly isCounted: boolean;
  readonly count: number;
}

export interface Entry extends Omit<NewEntry, 'environmentId' | 'isCounted'> {
  readonly entryId: number;
  /** `null` if the entry concerns the whole service. */
  readonly environment: string | null;
  readonly at: Date;
  readonly lastAt: Date;
}

/** Callers must pass the entries in a fixed order, so that processes do not deadlock. */
export async function insertEntries(db: Database, entries: readonly NewEntry[]): Promise<void> {
  await sql`
    insert into audit_entries as e (
      environment_id, action, outcome, actor_kind, actor_name, session_id, address, thing, details, hour, count
    )
    select
      "environmentId", action, outcome, "actorKind", "actorName", "sessionId", address, thing, details,
      case when "isCounted" then date_trunc('hour', now()) end, count
    from jsonb_to_recordset(${JSON.stringify(entries)}::jsonb) as n (
      "environmentId" integer, action text, outcome text, "actorKind" text, "actorName" text, "sessionId" text,
      address text, thing text, details jsonb, "isCounted" boolean, count bigint
    )
    on conflict (hour, action, environment_id, actor_kind, actor_name, session_id, address, thing, details)
      where hour is not null
    do update set count = e.count + excluded.count, last_at = greatest(e.last_at, excluded.last_at)`.execute(
    prepared(db),
  );
}

export interface EntryFilter {
  readonly actor?: string | undefined;
  readonly thing?: string | undefined;
  /** An action such as `key.created`, or a noun such as `key` for all actions on keys. */
  readonly action?: string | undefined;
  readonly since?: Date | null | undefined;
  readonly until?: Date | null | undefined;
}

export type EntryScope = { readonly environmentId: number } | 'service';

export function listEntries(
  db: Database,
  scope: EntryScope,
  { actor, thing, action, since, until }: EntryFilter,
  { before, limit }: { readonly before: number | null; readonly limit: number },
): Promise<Entry[]> {
  const conditions: RawBuilder<unknown>[] = [];
  if (scope !== 'service') conditions.push(sql`e.environment_id = ${scope.environmentId}`);
  if (before !== null) conditions.push(sql`e.entry_id < ${before}`);
  if (actor !== undefined) conditions.push(sql`e.actor_name = ${actor}`);
  if (thing !== undefined) conditions.push(sql`e.thing = ${thing}`);
  if (action !== undefined)
    conditions.push(sql`(e.action = ${action} or e.action like ${`${escapeLike(action)}.%`})`);
  if (since != null) conditions.push(sql`e.last_at >= ${since}`);
  if (until != null) conditions.push(sql`e.at < ${until}`);
  const where = conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`;
  return rowsOf<Entry>(db)`
    select
      e.entry_id as "entryId", n.name as environment, e.at, e.last_at as "lastAt", e.count,
      e.action, e.outcome, e.actor_kind as "actorKind", e.actor_name as "actorName",
      e.session_id as "sessionId", e.address, e.thing, e.details
    from audit_entries e
    left join environments n using (environment_id)
    ${where}
    order by e.entry_id desc
    limit ${limit}`;
}

const removedAtATime = 5_000;

/** The oldest entries have the lowest ids. */
export async function removeExpired(db: Database, days: number): Promise<number> {
  let sum = 0;
  for (;;) {
    const removed = await db.transaction().execute(async (transaction) => {
      await sql`select set_config('sluice.audit_days', ${String(days)}, true)`.execute(transaction);
      return columnOf<number>(transaction)`
        delete from audit_entries
        where entry_id in (
          select entry_id
          from (select entry_id, at from audit_entries order by entry_id limit ${removedAtATime}) oldest
          where at < now() - make_interval(days => ${days}::integer)
        )
        returning entry_id`;
    });
    sum += removed.length;
    if (removed.length < removedAtATime) return sum;
  }
}
