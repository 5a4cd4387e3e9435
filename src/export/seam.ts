import type { TSchema } from 'typebox';
import type { Problem } from '../base/errors.ts';
import type { SegmentScope } from '../lookups/segments/segment.ts';
import type { Database } from '../postgres/database.ts';
import type { SegmentTest } from './filter.ts';

export interface ExportSeam {
  /** Options by the name of their request field. */
  readonly options: Readonly<Record<string, ExportOption>>;
}

/**
 * An option that selects users. Only users selected by all options of a request are exported, with
 * their companies and events. The record of the export and its manifest contain the values.
 */
export interface ExportOption<Value = unknown> {
  readonly schema: TSchema;
  /** Flag with its argument, such as `--segment <id>`. */
  readonly flag: string;
  readonly description: string;
  /**
   * Returns the value to store, which must be valid as input, because exports can be repeated. If
   * the value is invalid, adds its problems and returns `null`.
   */
  read(given: unknown, problems: Problem[]): Value | null;
  /**
   * Returns the problems of a value that only the database shows. Called before the export is
   * accepted.
   */
  findProblems?(db: Database, environmentId: number, value: Value): Promise<readonly Problem[]>;
  /**
   * Returns the condition for the selected users. Called when the export begins.
   * @throws FinalFailure
   */
  select(db: Database, scope: SegmentScope, value: Value): Promise<SegmentTest>;
}
