/*
 * Ways to take a safeguard from a service without a switch in it, so that tests can see themselves notice:
 * the ledger is told something else.
 */

type Sql = (text: string, values?: readonly unknown[]) => Promise<unknown>;

/** Defeats the fence for one attempt: the ledger says again that it owns the chunk, whoever has done it meanwhile. */
export async function defeatFence(
  sql: Sql,
  chunk: { readonly loadId: number; readonly chunkNo: number; readonly attempt: number },
): Promise<void> {
  const { loadId, chunkNo, attempt } = chunk;
  await sql(
    `update sluice.load_chunks
     set state = 'running', attempt = $3, lease_until = now() + interval '5 minutes'
     where load_id = $1 and chunk_no = $2`,
    [loadId, chunkNo, attempt],
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
