import { expect } from 'vitest';
import type { LoadContext } from '../../src/load/context.ts';
import { runManually, startManually } from './load-file.ts';

/** Takes the NDJSON of an increment over, as a consumer does: removes profiles as it says, then loads it. */
export async function takeIncrement(
  system: LoadContext,
  environmentId: number,
  text: string,
  chunkBytes: number,
): Promise<void> {
  const lines = text.trimEnd().split('\n');
  const records = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const isTombstone = (record: Record<string, unknown>) =>
    record['removed'] === true && Object.keys(record).length === 2;
  const gone = (key: string) =>
    records.filter((record) => isTombstone(record) && key in record).map((record) => record[key]);
  for (const [table, key] of [
    ['users', 'user_id'],
    ['companies', 'company_id'],
  ] as const) {
    await system.pool.query(`delete from sluice.${table} where environment_id = $1 and ${key} = any ($2)`, [
      environmentId,
      gone(key),
    ]);
  }
  const { status, tally } = await runManually(
    await startManually(system, environmentId, text, { chunkBytes }),
  );
  const refused = records.filter(isTombstone).length;
  expect([status, tally.rejected]).toEqual([refused === records.length ? 'failed' : 'completed', refused]);
}
