import type { TSchema } from 'typebox';
import type { Problem } from '../base/errors.ts';
import type { SegmentScope } from '../lookups/segments/segment.ts';
import type { Database } from '../postgres/database.ts';
import type { SegmentTest } from './filter.ts';

export interface ExportSeam {
  /** Options by the name of their field in a request. */
  readonly options: Readonly<Record<string, ExportOption>>;
}

/**
 * An option that selects users. If a request has several options, only users selected by all of
 * them are exported, together with their companies and events. The ledger and the manifest contain
 * the value of each option.
 */
export interface ExportOption<Value = unknown> {
  readonly schema: TSchema;
  /** The command-line flag with its argument, such as `--segment <id>`. */
  readonly flag: string;
  readonly description: string;
  /**
   * Checks the value in a request and returns the value to store. The stored value must also be
   * valid as input, because an export can be repeated. If the value is invalid, adds its problems
   * and returns `null`.
   */
  read(given: unknown, problems: Problem[]): Value | null;
  /**
   * Returns the problems that the value has in this environment. Called before the export is
   * accepted.
   */
  findProblems?(db: Database, environmentId: number, value: Value): Promise<readonly Problem[]>;
  /**
   * Returns the condition that selects the users. Called when the export begins. @throws
   * FinalFailure
   */
  select(db: Database, scope: SegmentScope, value: Value): Promise<SegmentTest>;
}
