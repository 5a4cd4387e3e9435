import type { ShownLink } from '../domain/identities.ts';
import { MAX_WINDOW_RETRIES } from '../domain/limits.ts';
import { inTransaction } from '../postgres/database.ts';
import { isAliasMet } from '../postgres/sqlstate.ts';
import { findPersons, writeShownLinks } from '../postgres/stores/aliases.ts';
import type { IngestContext } from './records.ts';

interface OfEnvironment {
  readonly environmentId: number;
}

/**
 * Gives records to the persons whom their ids belong to. An environment without aliases costs nothing: only when a statement refuses a
 * record because its id is an alias are the aliases of that environment looked up, and the statement, which was rolled back, done again.
 */
export class Persons {
  readonly #pool: IngestContext['pool'];
  readonly #db: IngestContext['db'];
  readonly #aliased = new Set<number>();

  constructor({ pool, db }: Pick<IngestContext, 'pool' | 'db'>) {
    this.#pool = pool;
    this.#db = db;
  }

  /** Writes records, all or none, as records of their persons. */
  async writing<T extends OfEnvironment>(
    records: readonly T[],
    write: (records: readonly T[]) => Promise<void>,
  ): Promise<void> {
    for (let retries = 0; ; retries++) {
      try {
        return await write(await this.resolve(records));
      } catch (error) {
        if (!isAliasMet(error) || retries === MAX_WINDOW_RETRIES) throw error;
        for (const { environmentId } of records) this.#aliased.add(environmentId);
      }
    }
  }

  async resolve<T extends OfEnvironment>(records: readonly T[]): Promise<readonly T[]> {
    if (this.#aliased.size === 0) return records;
    const persons = new Map<number, ReadonlyMap<string, string>>();
    for (const environmentId of new Set(records.map((record) => record.environmentId))) {
      if (!this.#aliased.has(environmentId)) continue;
      const ids = records.flatMap((record) =>
        record.environmentId === environmentId && 'userId' in record ? [String(record.userId)] : [],
      );
      persons.set(environmentId, await findPersons(this.#db, environmentId, [...new Set(ids)]));
    }
    return records.map((record) => {
      const userId = 'userId' in record && persons.get(record.environmentId)?.get(String(record.userId));
      return userId ? { ...record, userId } : record;
    });
  }

  /** Makes the aliases that records show, before the records are written: they may stay if that fails. */
  async link(environmentId: number, links: readonly ShownLink[]): Promise<void> {
    await inTransaction(this.#pool, ({ db }) => writeShownLinks(db, environmentId, links));
    this.#aliased.add(environmentId);
  }
}
