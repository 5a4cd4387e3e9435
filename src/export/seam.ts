import type { TSchema } from 'typebox';
import type { Problem } from '../base/errors.ts';
import type { SegmentScope } from '../lookups/segments/segment.ts';
import type { Database } from '../postgres/database.ts';
import type { SegmentTest } from './filter.ts';

export interface ExportSeam {
  /** Options by the names of their fields in a request. */
  readonly options: Readonly<Record<string, ExportOption>>;
}

/**
 * An option that selects users. An export with several options has the users that all of them
 * select, with the companies and events of these users. Requests, files and the command line have
 * the option, and the ledger and the manifest have its value.
 */
export interface ExportOption<Value = unknown> {
  readonly schema: TSchema;
  /** Flag with its argument, such as `--segment <id>`. */
  readonly flag: string;
  /** Description of the flag in the help of the command line. */
  readonly description: string;
  /**
   * Returns the value to store. A later request may have it, too. Adds the problems of a wrong
   * value, and returns `null`.
   */
  read(given: unknown, problems: Problem[]): Value | null;
  /** Returns the problems that the value has in this environment, before the export is accepted. */
  findProblems?(db: Database, environmentId: number, value: Value): Promise<readonly Problem[]>;
  /** Returns the condition on users when the export begins. @throws FinalFailure */
  select(db: Database, scope: SegmentScope, value: Value): Promise<SegmentTest>;
}
