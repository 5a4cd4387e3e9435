import type { TSchema } from 'typebox';
import type { Place } from '../base/operator-file/read.ts';
import type { Keyed } from '../domain/definitions.ts';
import type { Database } from '../postgres/database.ts';

/**
 * A capability's list in the definitions file. Each item has a `key` that is unique in the list.
 * When a file is applied, the stored items of the environment are changed to equal the list, in the
 * same transaction as the rest of the file.
 */
export interface DefinitionList {
  readonly name: string;
  /** Schema of the list. Its default must be an empty list. */
  readonly schema: TSchema;
  /** True if keys that differ only in case count as the same key. Default: false. */
  readonly ignoresCase?: boolean;
  /**
   * True if exports of a whole environment omit the list, and imports of one refuse it. Default:
   * false.
   */
  readonly isLocal?: boolean;
  /** Checks what the schema cannot express. Also called for a list that violates the schema. */
  check?(list: Place): void;
  /** Reads and writes the stored items. They have the fields of the schema. */
  readonly table: DefinitionsOf<never, Keyed>;
}

export interface DefinitionsOf<Item, StoredItem = Item> {
  /** Reads the items, sorted by id, or by key if the kind has no ids. */
  read(db: Database, environmentId: number): Promise<StoredItem[]>;
  add(db: Database, environmentId: number, items: readonly Item[]): Promise<void>;
  change(db: Database, environmentId: number, item: Item): Promise<void>;
  remove(db: Database, environmentId: number, keys: readonly string[]): Promise<void>;
}

declare module '../context.ts' {
  interface System {
    /** The lists that capabilities define, in the order of the registry. */
    readonly definitionLists: () => Promise<readonly DefinitionList[]>;
  }
}
