import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { exportQueueName, queueName } from '../../src/domain/task.ts';
import { createFileSystemStore } from '../../src/files/file-system.ts';
import { createQueueBackend } from '../../src/queue/backend.ts';
import { type Actor, some } from './actors/actor.ts';
import type { Inflicted } from './faults.ts';
import { ownSession, type Site } from './site/site.ts';
import { until } from './waiting.ts';

export interface Scene {
  readonly site: Site;
  readonly actors: readonly Actor[];
  readonly faults: readonly Inflicted[];
}

/** Something that must be so when the soak is over. */
export interface Invariant {
  readonly name: string;
  /** Looks; sentences that say what is not so. */
  look(scene: Scene): Promise<readonly string[]>;
}

/** One that a statement decides: its rows are what is wrong, each with a text `what`. */
function noRows(name: string, statement: string): Invariant {
  return {
    name,
    look: async ({ site }) => {
      const rows = await site.sql<{ what: string }>(`select what from (${statement}) found limit 20`);
      return rows.map(({ what }) => what);
    },
  };
}

/** Read while the service runs; nothing is under way any more. */
export const ledgerInvariants = [
  noRows(
    'no load failed',
    `select 'load ' || job_id || ' failed: ' || failure_message as what from sluice.loads where status = 'failed'`,
  ),
  noRows(
    'no deletion failed',
    `select 'deletion ' || job_id || ' failed: ' || failure_message as what from sluice.deletions where status = 'failed'`,
  ),
  noRows(
    'every completed load balances, with its chunks and its rejects',
    `select 'load ' || job_id || ': ' || problem as what
     from (
       select job_id,
         case
           when rows_read <> total_rows then rows_read || ' of ' || total_rows || ' records read'
           when rows_read <> rows_inserted + rows_updated + rows_unchanged + rows_removed + rows_superseded + rows_rejected
             then 'read is not the sum of the others'
           when rows_read <> (select sum(row_count) from sluice.load_chunks c where c.load_id = l.load_id)
             then 'the chunks have another number of records'
           when exists (select from sluice.load_chunks c where c.load_id = l.load_id and done_at is null)
             then 'a chunk is not done'
           when rows_rejected <> (select count(*) from sluice.load_rejects r where r.load_id = l.load_id)
             -- A deletion removes those that hold its ids.
             and not exists (select from sluice.deletions d where d.environment_id = l.environment_id)
             then rows_rejected || ' refused, and another number is kept'
         end as problem
       from sluice.loads l
       where status = 'completed'
     ) checked
     where problem is not null`,
  ),
  noRows(
    'every deletion has an outcome for each id',
    `select 'deletion ' || job_id || ' has ' || count(outcome) || ' outcomes for ' || ids_requested || ' ids' as what
     from sluice.deletions join sluice.deletion_ids using (deletion_id)
     group by deletion_id, job_id, ids_requested
     having count(outcome) <> ids_requested`,
  ),
  noRows(
    'no task is being worked on',
    `select kind || ' ' || subject_id || ':' || part || ' is being worked on' as what
     from sluice.tasks
     left join sluice.loads on load_id = subject_id and kind in ('begin', 'chunk', 'finish')
     -- What was under way when its load was cancelled stays so until that is retried; the pruning comes when it is due.
     where lease_until is not null and status is distinct from 'cancelled' and kind <> 'prune'`,
  ),
  noRows(
    'every file taken from the inbox is concluded',
    `select 'inbox file ' || name || ' is ' || state as what from sluice.inbox_files where state <> 'concluded'`,
  ),
  noRows(
    'nothing is staged for a load that is completed',
    `select 'hashes of load ' || load_id as what
     from sluice.load_chunk_keys join sluice.loads using (load_id) where status = 'completed'
     union all
     select 'replay notes of load ' || load_id
     from sluice.load_replays join sluice.loads using (load_id) where status = 'completed'`,
  ),
  noRows(
    'every id of an event has its event, and no event is there twice',
    `select 'id ' || event_id || ' without an event' as what
     from sluice.event_ids k
     where not exists (
       select 1
       from sluice.events e
       where e.environment_id = k.environment_id and e.user_id = k.user_id
         and e.inserted_at = k.inserted_at and e.event_id = k.event_id
     )
     union all
     select 'event ' || event_id || ' is there ' || count(*) || ' times'
     from sluice.events group by environment_id, user_id, event_id having count(*) > 1`,
  ),
];

/** Our own bugs, as the service itself would call them, and what Node says before it dies. */
const bugs = [
  /"type":"(?:Fault|TypeError|RangeError|ReferenceError)"/,
  /"level":60/,
  /^(?:Uncaught|node:internal)/,
];
const shownChars = 400;

export const logsHaveNoBugs: Invariant = {
  name: 'no log tells of a bug',
  async look({ site }) {
    const folder = join(site.folder, 'logs');
    const found: string[] = [];
    for (const name of await readdir(folder)) {
      for await (const line of createInterface({ input: createReadStream(join(folder, name)) })) {
        if (found.length < 20 && bugs.some((bug) => bug.test(line)))
          found.push(`${name}: ${line.slice(0, shownChars)}`);
      }
    }
    return found;
  },
};

/** A job lost with its worker is taken up by another: its lock of ten seconds must run out, and somebody look. */
const timeoutMs = 40_000;

export const queueIsDone: Invariant = {
  name: 'no job of the queue is stuck',
  async look({ site }) {
    const backend = createQueueBackend({ databaseUrl: site.databaseUrl, redisUrl: site.redis?.url ?? null });
    const queues = [queueName, exportQueueName].map((name) => backend.createQueue(name, {}));
    for (const queue of queues) queue.on('error', () => undefined);
    let stuck: readonly string[] = ['the queue could not be read'];
    await until(
      async () => {
        const counts = await Promise.all(
          queues.map((queue) => queue.getJobCounts('active', 'waiting', 'prioritized')),
        );
        stuck = counts.flatMap((count, at) =>
          Object.entries(count).flatMap(([state, jobs]) =>
            jobs > 0 ? [`${jobs} jobs of ${queues[at]?.name} are ${state}`] : [],
          ),
        );
        return stuck.length === 0 ? true : null;
      },
      { timeoutMs, everyMs: 250 },
    );
    await Promise.all(queues.map((queue) => queue.close()));
    await backend.close();
    return stuck;
  },
};

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

/** Looked at when the service has been stopped, and what processes that were killed left behind has been swept. */
export const storeInvariants: readonly Invariant[] = [
  {
    name: 'every file that the ledger names is there',
    async look(scene) {
      const { named, stored } = await compare(scene);
      const missing = [...named].filter((ref) => !stored.has(ref));
      return missing.length > 0 ? [`${missing.length} files are missing: ${some(missing)}`] : [];
    },
  },
  {
    name: 'no file without a row',
    async look(scene) {
      const { named, stored } = await compare(scene);
      // Of those whose receiver was lost the ledger knows too; they go an hour later.
      const received = await scene.site.sql<{ ref: string }>(
        'select file_ref as ref from sluice.received_files',
      );
      for (const { ref } of received) stored.delete(ref);
      const orphans = [...stored].filter((ref) => !named.has(ref) && !ref.startsWith('tmp/'));
      return orphans.length > 0 ? [`${orphans.length} files are nobody's: ${some(orphans)}`] : [];
    },
  },
  {
    name: 'no temporary file after a sweep',
    async look({ site }) {
      // What the workers do an hour later.
      await createFileSystemStore(site.filesDir).sweepTemporary(0);
      const left = (await filesBelow(site.filesDir)).filter(
        (ref) => ref.startsWith('tmp/') || ref.endsWith('.part'),
      );
      return left.length > 0 ? [`${left.length} temporary files are left: ${some(left)}`] : [];
    },
  },
];

async function compare({ site }: Scene): Promise<{ named: ReadonlySet<string>; stored: Set<string> }> {
  const rows = await site.sql<{ ref: string }>(
    `select file_ref as ref from sluice.loads where file_ref is not null
     union all select file_ref from sluice.export_files`,
  );
  return { named: new Set(rows.map(({ ref }) => ref)), stored: new Set(await filesBelow(site.filesDir)) };
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}
