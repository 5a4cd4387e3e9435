import type { Static, TSchema } from 'typebox';
import type { Config } from '../base/config.ts';
import type { FieldChange } from '../base/difference.ts';
import type { OperatorFile } from '../base/operator-file/read.ts';
import type { OptionTable } from '../domain/option-table.ts';
import type { Database } from '../postgres/database.ts';

/**
 * A part of an environment that a file declares, such as its definitions. The section checks its
 * member of the file, compares that member with what is stored, and stores it.
 */
export interface DeclaredSection<S extends TSchema = TSchema> {
  /**
   * Name of the member. The member has the same format as the file that the section's own command
   * accepts.
   */
  readonly name: string;
  /**
   * Returns the reader of the member. The reader reports every problem that can be found without a
   * database.
   */
  reader(of: Declaration): Promise<OperatorFile<S>>;
  /**
   * Compares the member with what is stored, without writing anything. Call it in the transaction
   * of `write`, after `lockEnvironment`. Throws an error for people if the changes are not allowed.
   */
  plan(db: Database, environmentId: number, declared: Static<S>, options: PlanOptions): Promise<SectionPlan>;
}

/** The environment for which a member is read, and the settings of this process. */
export interface Declaration {
  readonly environment: string;
  readonly config: Config;
  readonly processEnv: Readonly<Record<string, string | undefined>>;
  readonly optionTable: OptionTable;
}

/** Id of an environment that does not exist yet, for which nothing is stored. */
export const NO_ENVIRONMENT = 0;

export interface PlanOptions {
  /** True if stored items that are missing from the member are removed. */
  readonly prune: boolean;
}

export interface SectionPlan {
  /** Changes in the order in which people read them, without secrets. */
  readonly changes: readonly ItemChange[];
  /** Writes the changes. */
  write(): Promise<void>;
  /** Called after the commit, if there were changes. */
  readonly afterCommit?: (db: Database) => Promise<void>;
}

export interface ItemChange {
  readonly action: 'add' | 'change' | 'remove';
  /** Name of the item within its section. */
  readonly item: string;
  /** Fields that have changed. Empty unless the action is a change. */
  readonly fields: readonly FieldChange[];
}

/** Erases the type of the member, so that sections of all types can be in the same list. */
export function defineSection<S extends TSchema>(section: DeclaredSection<S>): DeclaredSection {
  return section as unknown as DeclaredSection;
}
