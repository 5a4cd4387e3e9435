import { until } from '../patience.ts';
import { ownSession } from '../site/site.ts';
import type { Invariant } from './invariant.ts';

const ours = 'datname = current_database() and pid <> pg_backend_pid()';
const settleMs = 20_000;

/** While the service runs: sessions wait for a moment between two statements, but not for long. */
export const noIdleTransaction: Invariant = passing(
  'no session is idle in a transaction',
  `select 'session ' || application_name || ' has been ' || state || ' since ' || state_change as what
   from pg_stat_activity where ${ours} and state like 'idle in transaction%'`,
);

/** When it has been stopped. */
export const stoppedInvariants: readonly Invariant[] = [
  passing(
    'no session outlives its process',
    `select 'session ' || application_name || ' (' || coalesce(state, 'none') || ')' as what
     from pg_stat_activity
     where ${ours} and backend_type = 'client backend' and application_name not like '${ownSession}%'`,
  ),
  passing(
    'no advisory lock is held',
    `select 'advisory lock ' || classid || ' ' || objid as what from pg_locks
     where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
  ),
  passing(
    'no temporary or half-made table is left',
    `select relnamespace::regnamespace || '.' || relname as what from pg_class
     where relkind in ('r', 'p') and (
       relpersistence = 't'
       or (relnamespace = 'sluice'::regnamespace and relname ~ '^events_\\d' and not relispartition)
     )`,
  ),
  passing('no transaction is left prepared', `select gid as what from pg_prepared_xacts`),
];

/** What may be so for a moment. */
function passing(name: string, statement: string): Invariant {
  return {
    name,
    async look({ site }) {
      let left: readonly { readonly what: string }[] = [{ what: 'the database did not answer' }];
      await until(
        async () => {
          left = await site.sql<{ what: string }>(statement);
          return left.length === 0 ? true : null;
        },
        { timeoutMs: settleMs },
      );
      return left.slice(0, 20).map(({ what }) => what);
    },
  };
}
