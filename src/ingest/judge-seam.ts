import type { Config } from '../base/config.ts';
import type { PropertyEntity } from '../domain/entity.ts';
import type { Reason } from '../domain/reject.ts';
import type { Database } from '../postgres/database.ts';

/** Judge of records before they are stored, in environments that use it. */
export interface JudgeSeam {
  /** Name of the use. Single records after the start of the use were judged. */
  readonly use: string;
  /** Opens the current judge, or returns `null`. @throws TransientError */
  current(context: JudgeContext, environmentId: number): Promise<JudgeStage | null>;
}

export interface JudgeContext {
  readonly db: Database;
  readonly config: Config;
}

export interface JudgeStage {
  /** Returns properties as stored, and the reasons for a refusal. */
  judgeProperties(
    entity: PropertyEntity,
    properties: Readonly<Record<string, unknown>>,
    about: { readonly isBeside?: boolean; readonly eventName?: string },
  ): { readonly kept: Readonly<Record<string, unknown>>; readonly reasons: readonly Reason[] };
}
