import { noRows } from './invariant.ts';

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
           when rows_read <> rows_inserted + rows_updated + rows_unchanged + rows_superseded + rows_rejected
             then 'read is not the sum of the others'
           when rows_read <> (select sum(row_count) from sluice.load_chunks c where c.load_id = l.load_id)
             then 'the chunks have another number of records'
           when exists (select from sluice.load_chunks c where c.load_id = l.load_id and state <> 'done')
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
    'no chunk is being worked on',
    `select 'chunk ' || load_id || ':' || chunk_no || ' is ' || state as what
     from sluice.load_chunks join sluice.loads using (load_id)
     -- What was under way when its load was cancelled stays so until that is retried.
     where state = 'running' and status <> 'cancelled'`,
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
       select from sluice.events e
       where e.environment_id = k.environment_id and e.inserted_at = k.inserted_at and e.event_id = k.event_id
     )
     union all
     select 'event ' || event_id || ' is there ' || count(*) || ' times'
     from sluice.events group by environment_id, event_id having count(*) > 1`,
  ),
];
