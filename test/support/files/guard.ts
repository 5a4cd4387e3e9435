import { type Load, requireLoad } from '../../../src/load/read-store.ts';
import type { TestSystem } from '../servers/system.ts';
import { waitFor } from '../wait-for.ts';

interface Shape {
  readonly refused?: number;
  readonly columns?: readonly string[];
}

/** Returns a CSV of `rows` users, of which the first `refused` have no id. */
export function usersOf(rows: number, { refused = 0, columns = ['plan'] }: Shape = {}): string {
  const lines = Array.from({ length: rows }, (_, row) => [
    row < refused ? '' : `u${row}`,
    ...columns.map((name) => `${name}-${rows}`),
  ]);
  return `${['user_id', ...columns].join()}\n${lines.map((cells) => `${cells.join()}\n`).join('')}`;
}

export function heldLoad({ system }: TestSystem, environmentId: number): Promise<Load> {
  return waitFor('a load to be held', async () => {
    const row = await system.db
      .selectFrom('loads')
      .select('job_id')
      .where((eb) => eb.and({ environment_id: environmentId, status: 'held' }))
      .executeTakeFirst();
    return row === undefined ? null : requireLoad(system, environmentId, row.job_id);
  });
}
