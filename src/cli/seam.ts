import type { Static, TSchema } from 'typebox';
import type { Config } from '../base/config.ts';
import type { FieldChange } from '../base/difference.ts';
import type { OperatorFile } from '../base/operator-file/read.ts';
import type { Acts } from '../postgres/acts.ts';
import type { Database } from '../postgres/database.ts';
import type { Cli } from './settings.ts';

declare module './settings.ts' {
  interface Cli {
    /** Sections in the order in which they are applied. */
    readonly declaredSections: () => Promise<readonly DeclaredSection[]>;
  }
}

/** A part of an environment that a file declares, such as its definitions. */
export interface DeclaredSection<S extends TSchema = TSchema> {
  /**
   * Name of the section's member in the file. The member has the same format as the file that the
   * section's own command accepts.
   */
  readonly name: string;
  open(of: Declaration): Promise<OpenSection<S>>;
}

export interface OpenSection<S extends TSchema = TSchema> {
  /**
   * Reads and checks the content of the section. Reports every problem that can be found without a
   * database.
   */
  readonly file: OperatorFile<S>;
  /**
   * Computes the changes, but writes nothing. Call it after `lockEnvironment`, in the transaction
   * that then calls `write`. @throws an error with a message for the user if the changes are not
   * allowed
   */
  plan(db: Database, environmentId: number, declared: Static<S>, options: PlanOptions): Promise<SectionPlan>;
}

export interface Declaration {
  readonly environment: string;
  readonly config: Config;
  readonly cli: Pick<Cli, 'processEnv' | 'optionTable' | 'exportOptions'>;
}

/** An environment that does not exist yet, for which nothing is stored. */
export const NO_ENVIRONMENT = 0;

export interface PlanOptions {
  /** Removes stored items that are missing in the section's member. */
  readonly prune: boolean;
}

export interface SectionPlan {
  /** Changes as they are shown to the user: in reading order, and without secrets. */
  readonly changes: readonly ItemChange[];
  write(acts: Acts): Promise<void>;
  /** Called after the commit, only if there were changes. */
  readonly afterCommit?: (db: Database) => Promise<void>;
}

export interface ItemChange {
  readonly action: 'add' | 'change' | 'remove';
  readonly item: string;
  /** Empty unless `action` is `change`. */
  readonly fields: readonly FieldChange[];
}

/** Hides the type of the section's content, so that one list can contain all sections. */
export function defineSection<S extends TSchema>(section: DeclaredSection<S>): DeclaredSection {
  return section as unknown as DeclaredSection;
}
