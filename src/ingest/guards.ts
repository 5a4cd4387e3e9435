import { InputError, type Problem } from '../base/errors.ts';
import { retry } from '../base/retry.ts';
import { yielding } from '../base/yielding.ts';
import type { QueryFile } from '../postgres/database.ts';
import { constraintOf, isUnknownUse } from '../postgres/sqlstate.ts';
import { composeGuards, type Guard, type RefusalSeam, readUses } from '../postgres/uses.ts';
import {
  type AnyRecord,
  type IngestContext,
  type JudgeSeam,
  type JudgeStage,
  MAX_WINDOW_TRIES,
  type Properties,
  RecordsRefused,
} from './records.ts';

/**
 * Writes the records of environments that use capabilities. A capability can add checks to the SQL
 * statement and can have a judge for the records.
 */
export class Guards {
  readonly #context: IngestContext;
  readonly #judge: Judge | null;
  /**
   * Capabilities in use, by environment. Until its uses are read, an environment is assumed to use
   * no capabilities.
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

  /** Writes all records or none. @throws RecordsRefused that names the refused records */
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

/** Maximum time until a changed stage takes effect. */
const STAGE_KNOWN_MS = 1_000;

/** Judges records of environments that use the judge. Caches one stage per environment. */
class Judge {
  readonly #context: IngestContext;
  readonly #seam: JudgeSeam;
  readonly #known = new Map<number, { stage: Promise<JudgeStage | null>; until: number }>();
  /**
   * Results of the judge, by received record. A window may be written several times, but a record
   * is judged once.
   */
  #judged = new WeakMap<AnyRecord, AnyRecord | InputError>();

  constructor(context: IngestContext, seam: JudgeSeam) {
    this.#context = context;
    this.#seam = seam;
  }

  forget(environmentId: number): void {
    this.#known.delete(environmentId);
    this.#judged = new WeakMap();
  }

  /** Returns the records to store. @throws RecordsRefused */
  async judge<T extends AnyRecord>(
    records: readonly T[],
    uses: ReadonlyMap<number, readonly string[]>,
  ): Promise<readonly T[]> {
    const isJudged = ({ environmentId }: T) => uses.get(environmentId)?.includes(this.#seam.use) === true;
    if (!records.some(isJudged)) return records;
    const accepted: T[] = [];
    const refused = new Map<T, unknown>();
    // Judging can be slow, because it matches patterns.
    for await (const record of yielding(records)) {
      try {
        accepted.push(isJudged(record) ? await this.#judgeOnce(record) : record);
      } catch (error) {
        refused.set(record, error);
      }
    }
    if (refused.size > 0) throw new RecordsRefused(refused, null);
    return accepted;
  }

  async #judgeOnce<T extends AnyRecord>(record: T): Promise<T> {
    let judged = this.#judged.get(record);
    if (judged === undefined) {
      const stage = await this.#stageOf(record.environmentId);
      judged = stage === null ? record : judge(stage, record);
      this.#judged.set(record, judged);
    }
    if (judged instanceof InputError) throw judged;
    return judged as T;
  }

  #stageOf(environmentId: number): Promise<JudgeStage | null> {
    const now = performance.now();
    let cached = this.#known.get(environmentId);
    if (cached === undefined || cached.until < now) {
      const stage = this.#seam.current(this.#context, environmentId);
      cached = { stage, until: now + STAGE_KNOWN_MS };
      this.#known.set(environmentId, cached);
      stage.catch(() => this.#known.delete(environmentId));
    }
    return cached.stage;
  }
}

function judge<T extends AnyRecord>(stage: JudgeStage, record: T): T | InputError {
  const problems: Problem[] = [];
  const pass = (...options: Parameters<JudgeStage['judgeProperties']>): Properties => {
    const { kept, reasons } = stage.judgeProperties(...options);
    for (const { message, column } of reasons)
      problems.push({ code: 'breaks_rule', message, details: column ?? '' });
    return kept;
  };
  let judged: object;
  if ('eventName' in record) {
    judged = { metadata: pass('events', record.metadata, record) };
  } else if ('userId' in record) {
    const properties = pass('users', record.properties, record);
    judged = { properties, company: pass('companies', record.company, { isDerived: true }) };
  } else {
    judged = { properties: pass('companies', record.properties, record) };
  }
  const [first, ...others] = problems;
  return first === undefined ? { ...record, ...judged, marked: true } : new InputError(first, ...others);
}
