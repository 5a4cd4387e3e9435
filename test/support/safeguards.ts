/*
 * Ways to take a safeguard from a service without a switch in it, so that tests can see themselves notice:
 * the ledger is told something else.
 */

type Sql = (text: string, values?: readonly unknown[]) => Promise<unknown>;

/** An attempt at a chunk. */
export interface ChunkAttempt {
  readonly taskId: number;
  readonly loadId: number;
  readonly chunkNo: number;
  readonly attempt: number;
}

/** Defeats the fence for one attempt: the ledger says again that it owns the task, whoever has done it meanwhile. */
export async function defeatFence(sql: Sql, chunk: ChunkAttempt): Promise<void> {
  const { taskId, loadId, chunkNo, attempt } = chunk;
  await sql(
    `insert into sluice.tasks (task_id, kind, subject_id, part, environment_id, attempt, lease_until)
     overriding system value
     select $1, 'chunk', load_id, $3, environment_id, $4, now() + interval '15 seconds'
     from sluice.loads where load_id = $2`,
    [taskId, loadId, chunkNo, attempt],
  );
}

/** No key is kept for the replay from now on. Returns how to put an end to that. */
export async function forgetReplays(sql: Sql): Promise<() => Promise<void>> {
  await sql(
    'create function sluice.forget() returns trigger language plpgsql as $$ begin return null; end $$',
  );
  await sql(
    'create trigger forget before insert on sluice.load_replays for each row execute function sluice.forget()',
  );
  return async () => void (await sql('drop function sluice.forget() cascade'));
}

/**
 * From now on the first chunk of a load is begun only when the others are done, or after 5 s: what a slow worker does by chance,
 * so that keys of several chunks are written out of order.
 */
export async function holdFirstChunks(sql: Sql): Promise<void> {
  await sql(
    `create function sluice.hold() returns trigger language plpgsql as $$
     begin
       for _ in 1 .. 100 loop
         exit when not exists (
           select 1 from sluice.tasks where kind = 'chunk' and subject_id = new.subject_id and part > 0
         );
         perform pg_sleep(0.05);
       end loop;
       return new;
     end $$`,
  );
  await sql(
    `create trigger hold before update on sluice.tasks for each row
     when (new.kind = 'chunk' and new.part = 0 and new.attempt > old.attempt) execute function sluice.hold()`,
  );
}
