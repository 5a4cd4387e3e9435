import type { TSchema } from 'typebox';
import type { Problem } from '../base/errors.ts';
import type { SegmentScope } from '../lookups/segments/segment.ts';
import type { Database } from '../postgres/database.ts';
import type { SegmentTest } from './filter.ts';

export interface ExportSeam {
  /** Options by request field. */
  readonly options: Readonly<Record<string, ExportOption>>;
}

/**
 * An option that selects users. With several options, an export contains the users selected by all
 * of them, with their companies and events. The ledger and the manifest contain the value of each
 * option.
 */
export interface ExportOption<Value = unknown> {
  readonly schema: TSchema;
  /** Flag with its argument, such as `--segment <id>`. */
  readonly flag: string;
  readonly description: string;
  /**
   * Returns the value to store, in a form that a later request may contain. If the value is
   * invalid, adds its problems and returns `null`.
   */
  read(given: unknown, problems: Problem[]): Value | null;
  /**
   * Returns the problems with the value in this environment. Called before the export is accepted.
   */
  findProblems?(db: Database, environmentId: number, value: Value): Promise<readonly Problem[]>;
  /** Returns the condition on users. Called when the export begins. @throws FinalFailure */
  select(db: Database, scope: SegmentScope, value: Value): Promise<SegmentTest>;
}
