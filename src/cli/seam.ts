import type { Static, TSchema } from 'typebox';
import type { Config } from '../base/config.ts';
import type { FieldChange } from '../base/difference.ts';
import type { OperatorFile } from '../base/operator-file/read.ts';
import type { Acts } from '../postgres/acts.ts';
import type { Database } from '../postgres/database.ts';
import type { Cli } from './settings.ts';

declare module './settings.ts' {
  interface Cli {
    /**
     * Loads the sections of a file that declares an environment, in the order in which they are
     * applied.
     */
    readonly declaredSections: () => Promise<readonly DeclaredSection[]>;
  }
}

/** A part of an environment that a file declares, such as its definitions. */
export interface DeclaredSection<S extends TSchema = TSchema> {
  /**
   * Name of the section's member in the file. The member has the format of the file that the
   * section's own command accepts.
   */
  readonly name: string;
  open(of: Declaration): Promise<OpenSection<S>>;
}

/** A section that was opened for the file of one environment. */
export interface OpenSection<S extends TSchema = TSchema> {
  /** Reader of the member. It reports every problem that can be found without a database. */
  readonly file: OperatorFile<S>;
  /**
   * Compares the member with what is stored, without writing anything. Call it in the transaction
   * of `write`, after `lockEnvironment`. If the changes are not allowed, throws an error with a
   * message for the user.
   */
  plan(db: Database, environmentId: number, declared: Static<S>, options: PlanOptions): Promise<SectionPlan>;
}

/** Environment for which a file is read, and the settings of this process. */
export interface Declaration {
  readonly environment: string;
  readonly config: Config;
  readonly cli: Pick<Cli, 'processEnv' | 'optionTable' | 'exportOptions'>;
}

/** Id of an environment that does not exist yet, for which nothing is stored. */
export const NO_ENVIRONMENT = 0;

export interface PlanOptions {
  /** True to remove stored items that the member lacks. */
  readonly prune: boolean;
}

export interface SectionPlan {
  /** Changes in the order in which people read them, without secrets. */
  readonly changes: readonly ItemChange[];
  write(acts: Acts): Promise<void>;
  /** Called after the commit, if there were changes. */
  readonly afterCommit?: (db: Database) => Promise<void>;
}

export interface ItemChange {
  readonly action: 'add' | 'change' | 'remove';
  readonly item: string;
  /** The changed fields, if `action` is `change`. Otherwise empty. */
  readonly fields: readonly FieldChange[];
}

/** Erases the type of the member, so that sections of all types can be in the same list. */
export function defineSection<S extends TSchema>(section: DeclaredSection<S>): DeclaredSection {
  return section as unknown as DeclaredSection;
}
