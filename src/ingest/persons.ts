import { type InputError, suppressedError } from '../domain/errors.ts';
import type { ShownLink } from '../domain/identities.ts';
import { MAX_WINDOW_RETRIES } from '../domain/limits.ts';
import { inTransaction } from '../postgres/database.ts';
import { isAliasMet, isSuppressionMet } from '../postgres/sqlstate.ts';
import { findPersons, writeShownLinks } from '../postgres/stores/aliases.ts';
import { findSuppressed } from '../postgres/stores/suppressions.ts';
import { type IngestContext, RecordsRefused } from './records.ts';

interface OfEnvironment {
  readonly environmentId: number;
}

/**
 * Gives records to the persons whom their ids belong to. An environment without aliases costs nothing: only when a statement refuses a
 * record because its id is an alias are the aliases of that environment looked up, and the statement, which was rolled back, done again.
 * Suppressions are looked up when a statement refuses a record because of one.
 */
export class Persons {
  readonly #pool: IngestContext['pool'];
  readonly #db: IngestContext['db'];
  readonly #aliased = new Set<number>();

  constructor({ pool, db }: Pick<IngestContext, 'pool' | 'db'>) {
    this.#pool = pool;
    this.#db = db;
  }

  /** Writes records, all or none, as records of their persons. @throws RecordsRefused */
  async writing<T extends OfEnvironment>(
    records: readonly T[],
    write: (records: readonly T[]) => Promise<void>,
  ): Promise<void> {
    for (let retries = 0; ; retries++) {
      const own = await this.resolve(records);
      try {
        return await write(own);
      } catch (error) {
        if (!isAliasMet(error) && !isSuppressionMet(error)) throw error;
        const keptOut = isAliasMet(error) ? [] : await this.#findKeptOut(own);
        if (keptOut.length > 0)
          throw refusal(records, new Map(keptOut.map((at) => [at, suppressedError()])), error);
        if (retries >= MAX_WINDOW_RETRIES) throw error;
        if (isAliasMet(error)) for (const { environmentId } of records) this.#aliased.add(environmentId);
      }
    }
  }

  async resolve<T extends OfEnvironment>(records: readonly T[]): Promise<readonly T[]> {
    if (this.#aliased.size === 0) return records;
    const persons = new Map<number, ReadonlyMap<string, string>>();
    for (const [environmentId, ids] of idsByEnvironment(records))
      if (this.#aliased.has(environmentId))
        persons.set(environmentId, await findPersons(this.#db, environmentId, ids));
    return records.map((record) => {
      const userId = persons.get(record.environmentId)?.get(idOf(record) ?? '');
      return userId ? { ...record, userId } : record;
    });
  }

  /** Returns the places of the records whose persons are kept out. */
  async #findKeptOut(records: readonly OfEnvironment[]): Promise<number[]> {
    const suppressed = new Map<number, ReadonlySet<string>>();
    for (const [environmentId, ids] of idsByEnvironment(records))
      suppressed.set(environmentId, await findSuppressed(this.#db, environmentId, ids));
    const isKeptOut = (record: OfEnvironment) =>
      suppressed.get(record.environmentId)?.has(idOf(record) ?? '') === true;
    return records.flatMap((record, at) => (isKeptOut(record) ? [at] : []));
  }

  /** Makes the aliases that records show, before the records are written: they may stay if that fails. */
  async link(environmentId: number, links: readonly ShownLink[]): Promise<void> {
    await inTransaction(this.#pool, ({ db }) => writeShownLinks(db, environmentId, links));
    this.#aliased.add(environmentId);
  }
}

function refusal(
  records: readonly unknown[],
  causes: ReadonlyMap<number, InputError>,
  cause: unknown,
): RecordsRefused {
  return new RecordsRefused(new Map(Array.from(causes, ([at, error]) => [records[at], error])), cause);
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
