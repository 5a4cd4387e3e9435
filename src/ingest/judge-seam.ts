import type { Config } from '../base/config.ts';
import type { PropertyEntity } from '../domain/entity.ts';
import type { Reason } from '../domain/reject.ts';
import type { Database } from '../postgres/database.ts';

/** A judge decides for each record whether it may be stored, and with which properties. */
export interface JudgeSeam {
  /**
   * Name under which an environment uses this judge (`src/postgres/uses.ts`). After an environment
   * has begun to use the judge, all of its single records and batches are judged.
   */
  readonly use: string;
  /**
   * Returns the stage that judges records at the moment. `null` if all records are accepted.
   * @throws TransientError
   */
  current(context: JudgeContext, environmentId: number): Promise<JudgeStage | null>;
}

export interface JudgeContext {
  readonly db: Database;
  readonly config: Config;
}

export interface JudgeStage {
  /** Returns the properties to store and the reasons for refusing the record, if any. */
  judgeProperties(
    entity: PropertyEntity,
    properties: Readonly<Record<string, unknown>>,
    about: { readonly isDerived?: boolean; readonly eventName?: string },
  ): { readonly kept: Readonly<Record<string, unknown>>; readonly reasons: readonly Reason[] };
}
