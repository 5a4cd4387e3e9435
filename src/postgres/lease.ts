import { type RawBuilder, sql } from 'kysely';
import { LEASE_MS } from '../domain/limits.ts';

/*
 * A lease says until when a piece of work belongs to whoever took it, on the database's clock. That clock may go back: after
 * a failover to a machine whose clock is behind, leases lie far ahead, and what a killed worker had would stay with it for
 * as long. Nobody is given a lease beyond its length, so one that is further away than twice that has lapsed.
 */
type Length = number | RawBuilder<number>;

/** The end of a lease that begins now. */
export function leaseFor(lengthMs: Length = LEASE_MS): RawBuilder<Date> {
  return sql<Date>`now() + ${lengthMs} * interval '1 millisecond'`;
}

/** Tells whether a lease has lapsed; false where there is none. */
export function isLapsed(column: string, lengthMs: Length = LEASE_MS): RawBuilder<boolean> {
  const until = sql.ref(column);
  return sql<boolean>`(${until} < now() or ${until} > now() + 2 * ${lengthMs} * interval '1 millisecond')`;
}

/** Tells whether the queue was not notified for so long, or only at a time to come, because the clock went back. */
export function isNotifiedLongAgo(olderThanMs: number, column = 'dispatched_at'): RawBuilder<boolean> {
  const at = sql.ref(column);
  const age = sql`${olderThanMs} * interval '1 millisecond'`;
  return sql<boolean>`(${at} is null or ${at} < now() - ${age} or ${at} > now() + ${age})`;
}
