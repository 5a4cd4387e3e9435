import type { DataType } from '../domain/data-type.ts';
import type { Database } from '../postgres/database.ts';
import type { HeldName } from './known-names.ts';

/** A name to be in the catalogue. A type of null is `string` if the name is new, and otherwise says nothing. */
export interface WantedName {
  readonly name: string;
  readonly type: DataType | null;
}

/** Where the names of one kind are kept. */
export interface NameTable {
  /**
   * Adds the names that are not there while there is room, and widens types, in one statement and in the order of the
   * names. Returns which of them are there then; one that another session adds at that moment may be missing.
   */
  write(db: Database, environmentId: number, names: readonly WantedName[]): Promise<HeldName[]>;
  readAll(db: Database, environmentId: number): Promise<HeldName[]>;
}
