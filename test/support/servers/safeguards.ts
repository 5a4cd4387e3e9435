/**
 * Functions that disable a safeguard of the service by changing the ledger. Tests use them to prove
 * that their checks fail without the safeguard. Production code needs no switch for this.
 */

type Sql = (text: string, values?: readonly unknown[]) => Promise<unknown>;

export interface ChunkAttempt {
  readonly taskId: number;
  readonly loadId: number;
  readonly chunkNo: number;
  readonly attempt: number;
}

/** Defeats the fence for one attempt, by making the attempt the owner of its task again. */
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

/** From now on, drops every row that records a replay, until the returned function is called. */
export async function forgetReplays(sql: Sql): Promise<() => Promise<void>> {
  await sql(
    'create function sluice.forget() returns trigger language plpgsql as $$ begin return null; end $$',
  );
  await sql(
    'create trigger forget before insert on sluice.load_replays for each row execute function sluice.forget()',
  );
  return async () => void (await sql('drop function sluice.forget() cascade'));
}
