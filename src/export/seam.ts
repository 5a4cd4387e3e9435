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
 * An option that selects users. If an export has several options, it contains the users selected by
 * all of them, with the companies and events of these users. Requests, files and the command line
 * contain the option. The ledger and the manifest contain its value.
 */
export interface ExportOption<Value = unknown> {
  readonly schema: TSchema;
  /** Flag with its argument, such as `--segment <id>`. */
  readonly flag: string;
  /** Description of the flag in the command-line help. */
  readonly description: string;
  /**
   * Returns the value to store, which a later request may also contain. If the value is invalid,
   * adds its problems and returns `null`.
   */
  read(given: unknown, problems: Problem[]): Value | null;
  /** Returns problems of the value in this environment, before the export is accepted. */
  findProblems?(db: Database, environmentId: number, value: Value): Promise<readonly Problem[]>;
  /** Returns the condition on users, when the export begins. @throws FinalFailure */
  select(db: Database, scope: SegmentScope, value: Value): Promise<SegmentTest>;
}
