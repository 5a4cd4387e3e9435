import type { InputError } from '../base/errors.ts';
import { retry } from '../base/retry.ts';
import type { QueryFile } from '../postgres/database.ts';
import { composeGuards, type Guard, type RefusalSeam } from '../postgres/guard.ts';
import { constraintOf, isUnknownUse } from '../postgres/sqlstate.ts';
import { readUses } from '../postgres/uses.ts';
import { Judge } from './judge.ts';
import { MAX_WINDOW_TRIES } from './limits.ts';
import { type AnyRecord, type IngestContext, RecordsRefused } from './records.ts';

/**
 * Prepares and writes records for environments that use capabilities. Such a capability can add
 * checks to the SQL statement and can have a judge for the records.
 */
export class Guards {
  readonly #context: IngestContext;
  readonly #judge: Judge | null;
  /**
   * Names of the capabilities in use, by environment. An environment is missing if it uses none, or
   * if this process has not read its uses yet.
   */
  readonly #uses = new Map<number, readonly string[]>();
  readonly #composed = new Map<string, QueryFile>();

  constructor(context: IngestContext) {
    this.#context = context;
    this.#judge = context.records && new Judge(context, context.records);
  }

  forget(environmentId: number): void {
    this.#judge?.forget(environmentId);
  }

  /**
   * Writes all records or none. If a check of a capability refuses the statement, finds out which
   * records violate it.
   * @throws RecordsRefused
   */
  async write<T extends AnyRecord>(
    records: readonly T[],
    write: (guard: Guard, judged: readonly T[]) => Promise<void>,
  ): Promise<void> {
    const isTransient = (error: unknown) => isUnknownUse(error) || this.#seamOf(error) !== null;
    await retry({ tries: MAX_WINDOW_TRIES, isTransient }, async () => {
      const guard = this.#guardFor(records);
      const judged = guard.uses.length === 0 ? null : await this.#judge?.judge(records, this.#uses);
      try {
        await write(guard, judged ?? records);
      } catch (error) {
        if (isUnknownUse(error)) await this.#learnUses(guard.environments);
        const seam = this.#seamOf(error);
        const causes = seam && (await this.#findRefused(seam, records));
        throw causes?.size ? new RecordsRefused(causes, error) : error;
      }
    });
  }

  async #learnUses(environmentIds: readonly number[]): Promise<void> {
    for (const [id, names] of await readUses(this.#context.db, environmentIds)) {
      this.#uses.set(id, names);
      this.forget(id);
    }
  }

  refusalOf(error: unknown): InputError | null {
    return this.#seamOf(error)?.error() ?? null;
  }

  #seamOf(error: unknown): RefusalSeam | null {
    const constraint = constraintOf(error);
    if (constraint === undefined) return null;
    return this.#context.refusals.find((seam) => seam.constraint === constraint) ?? null;
  }

  #guardFor(records: readonly AnyRecord[]): Guard {
    const environments = [...new Set(records.map(({ environmentId }) => environmentId))];
    const used = environments.flatMap((id) => (this.#uses.get(id) ?? []).map((name) => ({ id, name })));
    const names = [...new Set(used.map(({ name }) => name))].sort();
    const uses = used.map(({ id, name }) => `${id} ${name}`);
    return { environments, uses, compose: (query) => this.#compose(query, names) };
  }

  #compose(query: QueryFile, uses: readonly string[]): QueryFile {
    if (uses.length === 0) return query;
    const key = [query.name, ...uses].join('+');
    const composed = this.#composed.get(key) ?? composeGuards(query, uses, this.#context.refusals);
    this.#composed.set(key, composed);
    return composed;
  }

  async #findRefused(
    seam: RefusalSeam,
    records: readonly AnyRecord[],
  ): Promise<ReadonlyMap<unknown, InputError>> {
    const refused = new Map<unknown, InputError>();
    for (const environmentId of new Set(records.map((record) => record.environmentId))) {
      const candidates = records.filter((record) => record.environmentId === environmentId);
      const ids = new Set(candidates.flatMap((record) => idOf(record) ?? []));
      const refusedUsers = await seam.find(this.#context.db, environmentId, [...ids]);
      for (const record of candidates)
        if (refusedUsers.has(idOf(record) ?? '')) refused.set(record, seam.error());
    }
    return refused;
  }
}

const idOf = (record: AnyRecord): string | null => ('userId' in record ? record.userId : null);
