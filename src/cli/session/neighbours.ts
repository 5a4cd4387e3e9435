import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import type { System } from '../../context.ts';
import type { Terminal } from '../terminal.ts';

const prefix = 'command ';
const pollMs = 250;

/** Names our connections, so that a command sees the others. */
export const sessionRole: string = `${prefix}${process.pid}`;

/**
 * Waits while other commands use the embedded server that this one started: it would go with us. (They came while it
 * ran; had they come before, they would have started it.)
 */
export async function awaitNeighbours(
  { db }: System,
  terminal: Terminal,
  signal?: AbortSignal,
): Promise<void> {
  for (let told = false; signal?.aborted !== true; ) {
    const { rows } = await sql<{ name: string }>`
      select distinct application_name as name
      from pg_stat_activity
      where datname = current_database()
        and application_name like ${`sluice ${prefix}%`}
        and application_name <> ${`sluice ${sessionRole}`}`.execute(db);
    if (rows.length === 0) return;
    if (!told) terminal.note('Another sluice command uses the database of this one: waiting for it to end.');
    told = true;
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
}
