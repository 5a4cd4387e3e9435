import { type InputError, suppressedError } from '../domain/errors.ts';
import { MAX_WINDOW_RETRIES } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import { isSuppressionMet } from '../postgres/sqlstate.ts';
import { findSuppressed } from '../postgres/stores/suppressions.ts';
import { RecordsRefused } from './records.ts';

interface OfEnvironment {
  readonly environmentId: number;
}

/**
 * Writes records, all or none. Suppressions are looked up when a statement refuses a record because of one: an environment without
 * them costs nothing.
 * @throws RecordsRefused
 */
export async function refusingSuppressed<T extends OfEnvironment>(
  db: Database,
  records: readonly T[],
  write: () => Promise<void>,
): Promise<void> {
  for (let retries = 0; ; retries++) {
    try {
      return await write();
    } catch (error) {
      if (!isSuppressionMet(error)) throw error;
      const causes = await findRefused(db, records);
      if (causes.size > 0) throw new RecordsRefused(causes, error);
      if (retries >= MAX_WINDOW_RETRIES) throw error;
    }
  }
}

/** Returns the records whose users are suppressed, each with the error of its caller. */
async function findRefused(
  db: Database,
  records: readonly OfEnvironment[],
): Promise<ReadonlyMap<unknown, InputError>> {
  const suppressed = new Map<number, ReadonlySet<string>>();
  for (const [environmentId, ids] of idsByEnvironment(records))
    suppressed.set(environmentId, await findSuppressed(db, environmentId, ids));
  const isSuppressed = (record: OfEnvironment) =>
    suppressed.get(record.environmentId)?.has(idOf(record) ?? '') === true;
  return new Map(records.filter(isSuppressed).map((record) => [record, suppressedError()]));
}

const idOf = (record: OfEnvironment): string | null => ('userId' in record ? String(record.userId) : null);

/** The ids of users that records name, each once. */
function idsByEnvironment(records: readonly OfEnvironment[]): Map<number, string[]> {
  const ids = new Map<number, Set<string>>();
  for (const record of records) {
    const id = idOf(record);
    if (id === null) continue;
    const known = ids.get(record.environmentId) ?? new Set<string>();
    ids.set(record.environmentId, known.add(id));
  }
  return new Map(Array.from(ids, ([environmentId, some]) => [environmentId, [...some]]));
}
