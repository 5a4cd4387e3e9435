import { InputError, type Problem } from '../base/errors.ts';
import { RULES_KNOWN_MS } from '../base/limits.ts';
import { yielding } from '../base/yielding.ts';
import { compileRules, type EntityStage, type Stage } from '../rules/compile.ts';
import { readRules } from '../rules/store.ts';
import { type ReadBatch, rejection } from './read-batch.ts';
import type { BatchItem, IngestContext, ItemRecord, Properties } from './records.ts';

interface Known {
  readonly stage: Promise<Stage | null>;
  /** The stage, once it is there. */
  now?: Stage | null;
  readonly until: number;
}

/** Applies the rules of environments to the records of requests. Rules that change count within RULES_KNOWN_MS. */
export class RecordRules {
  readonly #context: Pick<IngestContext, 'db' | 'personal'>;
  readonly #known = new Map<number, Known>();

  constructor(context: Pick<IngestContext, 'db' | 'personal'>) {
    this.#context = context;
  }

  /** Has the rules of an environment read anew. */
  forget(environmentId: number): void {
    this.#known.delete(environmentId);
  }

  /** Returns what is stored of a record, and a promise of it only while the rules are read. @throws InputError if a rule refuses it. */
  apply<Item extends ItemRecord>(item: Item): Item | Promise<Item> {
    const stage = this.#stageOf(item.record.environmentId);
    if (stage === null) return item;
    return stage instanceof Promise
      ? stage.then((known) => (known ? applyTo(known, item) : item))
      : applyTo(stage, item);
  }

  async applyToBatch(environmentId: number, batch: ReadBatch): Promise<ReadBatch> {
    const stage = await this.#stageOf(environmentId);
    return stage === null ? batch : applyToItems(stage, batch);
  }

  #stageOf(environmentId: number): Stage | null | Promise<Stage | null> {
    const now = performance.now();
    let known = this.#known.get(environmentId);
    if (known === undefined || known.until < now) {
      known = { stage: this.#read(environmentId), until: now + RULES_KNOWN_MS };
      this.#known.set(environmentId, known);
      this.#keep(environmentId, known);
    }
    return known.now === undefined ? known.stage : known.now;
  }

  async #read(environmentId: number): Promise<Stage | null> {
    const { db, personal } = this.#context;
    const rules = await readRules(db, environmentId);
    if (rules === null) return null;
    return compileRules(rules.document, await personal.valuesFor(environmentId, rules.document));
  }

  #keep(environmentId: number, known: Known): void {
    known.stage.then(
      (stage) => {
        known.now = stage;
      },
      () => {
        if (this.#known.get(environmentId) === known) this.#known.delete(environmentId);
      },
    );
  }
}

/** Other requests have their turn in between: patterns may take long over each item. */
async function applyToItems(stage: Stage, { items, rejected }: ReadBatch): Promise<ReadBatch> {
  const refused = new Map<number, InputError>();
  const kept: BatchItem[] = [];
  for await (const item of yielding(items)) {
    try {
      kept.push(applyTo(stage, item));
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      if (!refused.has(item.index)) refused.set(item.index, error);
    }
  }
  if (refused.size === 0) return { items: kept, rejected };
  const more = Array.from(refused, ([index, error]) => rejection(index, error));
  return {
    // An item may be several records: all are stored, or none.
    items: kept.filter(({ index }) => !refused.has(index)),
    rejected: [...rejected, ...more].sort((a, b) => a.index - b.index),
  };
}

/** Returns the record as it is stored. @throws InputError */
function applyTo<T extends ItemRecord>(stage: Stage, item: T): T {
  const { entity, record } = item;
  const problems: Problem[] = [];
  const judged = (of: EntityStage | null, properties: Properties, options: object = {}): Properties =>
    of === null ? properties : judge(of, properties, problems, options);
  const isBeside = 'isBeside' in item;
  let ruled: object;
  if (entity === 'events') {
    ruled = { metadata: judged(stage.events, record.metadata, { eventName: record.eventName }) };
  } else if (entity === 'companies') {
    ruled = { properties: judged(stage.companies, record.properties, { isBeside }) };
  } else {
    ruled = {
      properties: judged(stage.users, record.properties, { isBeside }),
      company: judged(stage.companies, record.company, { isBeside: true }),
    };
  }
  const [first, ...others] = problems;
  if (first !== undefined) throw new InputError(first, ...others);
  return { ...item, record: { ...record, ...ruled, marked: true } };
}

interface JudgeOptions {
  readonly isBeside?: boolean;
  readonly eventName?: string;
}

function judge(
  stage: EntityStage,
  properties: Properties,
  problems: Problem[],
  { isBeside = false, eventName }: JudgeOptions,
): Properties {
  stage.begin();
  if (eventName !== undefined) stage.judgeName(() => eventName);
  const kept = stage.judgeAll(properties);
  stage.end(isBeside);
  for (const { message, column } of stage.problems) {
    problems.push({ code: 'breaks_rule', message, details: column ?? '' });
  }
  return kept;
}
