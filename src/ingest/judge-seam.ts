import type { Config } from '../base/config.ts';
import type { PropertyEntity } from '../domain/entity.ts';
import type { Reason } from '../domain/reject.ts';
import type { Database } from '../postgres/database.ts';

/** Judges records before they are stored, in environments that have this judge's use. */
export interface JudgeSeam {
  /**
   * Name of the use. All single records and batches that arrive after the use has begun are judged.
   */
  readonly use: string;
  /**
   * Returns `null` if the judge has no current stage.
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
    about: { readonly isBeside?: boolean; readonly eventName?: string },
  ): { readonly kept: Readonly<Record<string, unknown>>; readonly reasons: readonly Reason[] };
}
