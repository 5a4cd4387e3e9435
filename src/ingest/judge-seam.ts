import type { Config } from '../base/config.ts';
import type { PropertyEntity } from '../domain/entity.ts';
import type { Reason } from '../domain/reject.ts';
import type { Database } from '../postgres/database.ts';

/** Judges records before they are stored. Environments that do not use it never call it. */
export interface JudgeSeam {
  /** The name of the capability, by which they use it. Single records that are written after the use began were judged. */
  readonly use: string;
  /** Opens what judges single records now; null: nothing does. @throws TransientError */
  current(context: JudgeContext, environmentId: number): Promise<JudgeStage | null>;
}

export interface JudgeContext {
  readonly db: Database;
  readonly config: Config;
}

export interface JudgeStage {
  /** Returns the properties of a record as they are stored, and why the record is refused; for no reason: it is not. */
  judgeProperties(
    entity: PropertyEntity,
    properties: Readonly<Record<string, unknown>>,
    about: { readonly isBeside?: boolean; readonly eventName?: string },
  ): { readonly kept: Readonly<Record<string, unknown>>; readonly reasons: readonly Reason[] };
}
