import type { InputError } from '../base/errors.ts';
import { MAX_WINDOW_RETRIES } from '../base/limits.ts';
import type { Database, QueryFile } from '../postgres/database.ts';
import { composeGuards, type Guard, type RefusalSeam, type Refusals } from '../postgres/guard.ts';
import { constraintOf, isUnknownUse } from '../postgres/sqlstate.ts';
import { readUses } from '../postgres/uses.ts';
import { RecordsRefused } from './records.ts';

interface OfEnvironment {
  readonly environmentId: number;
}

/** Knows what environments use, and composes the statements of single records for it: once for each set of capabilities. */
export class Guards {
  readonly #db: Database;
  readonly #refusals: Refusals;
  /** Environments that use none, or of which it is not known, are not among them. */
  readonly #uses = new Map<number, readonly string[]>();
  readonly #composed = new Map<string, QueryFile>();

  constructor(db: Database, refusals: Refusals) {
    this.#db = db;
    this.#refusals = refusals;
  }

  /**
   * Writes records, all or none. Whom a capability refuses is looked up when a statement was refused.
   * @throws RecordsRefused
   */
  async write<T extends OfEnvironment>(
    records: readonly T[],
    write: (guard: Guard) => Promise<void>,
  ): Promise<void> {
    for (let retries = 0; ; retries++) {
      const guard = this.#guardFor(records);
      try {
        return await write(guard);
      } catch (error) {
        const mayRetry = retries < MAX_WINDOW_RETRIES;
        if (isUnknownUse(error) && mayRetry) {
          for (const [id, names] of await readUses(this.#db, guard.environments)) this.#uses.set(id, names);
          continue;
        }
        const seam = this.#seamOf(error);
        if (seam === null) throw error;
        const causes = await this.#findRefused(seam, records);
        if (causes.size > 0) throw new RecordsRefused(causes, error);
        if (!mayRetry) throw error;
      }
    }
  }

  /** Returns the refusal if the error is that of a guard. */
  refusalOf(error: unknown): InputError | null {
    return this.#seamOf(error)?.error() ?? null;
  }

  #seamOf(error: unknown): RefusalSeam | null {
    const constraint = constraintOf(error);
    if (constraint === undefined) return null;
    for (const seam of this.#refusals.values()) if (seam.constraint === constraint) return seam;
    return null;
  }

  #guardFor(records: readonly OfEnvironment[]): Guard {
    const environments = [...new Set(records.map(({ environmentId }) => environmentId))];
    const known = this.#uses.size === 0 ? [] : environments.flatMap((id) => this.#uses.get(id) ?? []);
    const uses = known.length < 2 ? known : [...new Set(known)].sort();
    return { environments, uses, compose: (query) => this.#compose(query, uses) };
  }

  #compose(query: QueryFile, uses: readonly string[]): QueryFile {
    if (uses.length === 0) return query;
    const key = [query.name, ...uses].join('+');
    const composed = this.#composed.get(key) ?? composeGuards(query, uses, this.#refusals);
    this.#composed.set(key, composed);
    return composed;
  }

  /** Returns the records whose users are refused, each with the error of its caller. */
  async #findRefused(
    seam: RefusalSeam,
    records: readonly OfEnvironment[],
  ): Promise<ReadonlyMap<unknown, InputError>> {
    const refused = new Map<number, ReadonlySet<string>>();
    for (const [environmentId, ids] of idsByEnvironment(records))
      refused.set(environmentId, await seam.find(this.#db, environmentId, ids));
    const isRefused = (record: OfEnvironment) =>
      refused.get(record.environmentId)?.has(idOf(record) ?? '') === true;
    return new Map(records.filter(isRefused).map((record) => [record, seam.error()]));
  }
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
