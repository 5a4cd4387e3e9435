import { InputError, type Problem } from '../base/errors.ts';
import { yielding } from '../base/yielding.ts';
import type { JudgeSeam, JudgeStage } from './judge-seam.ts';
import { type AnyRecord, type IngestContext, type Properties, RecordsRefused } from './records.ts';

/**
 * Lifetime of a cached stage, in milliseconds. A changed stage takes effect at the latest after
 * this time.
 */
const STAGE_KNOWN_MS = 1_000;

/**
 * Judges the records of the environments that use the judge. The stage of each environment is
 * cached for STAGE_KNOWN_MS.
 */
export class Judge {
  readonly #context: IngestContext;
  readonly #seam: JudgeSeam;
  readonly #known = new Map<number, { stage: Promise<JudgeStage | null>; until: number }>();
  /**
   * For each received record, the record to store or the refusal. A window may be written several
   * times, but each record is judged only once.
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

  /**
   * Returns the records to store. Records of environments that do not use the judge are returned
   * unchanged.
   * @throws RecordsRefused
   */
  async judge<T extends AnyRecord>(
    records: readonly T[],
    uses: ReadonlyMap<number, readonly string[]>,
  ): Promise<readonly T[]> {
    const isJudged = ({ environmentId }: T) => uses.get(environmentId)?.includes(this.#seam.use) === true;
    if (!records.some(isJudged)) return records;
    const accepted: T[] = [];
    const refused = new Map<T, unknown>();
    // Judging can be slow, because it matches patterns. Therefore, other requests run between
    // records.
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
