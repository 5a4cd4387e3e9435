import type { TSchema } from 'typebox';
import type { Place } from '../base/operator-file/read.ts';
import type { Keyed } from '../domain/definitions.ts';
import type { Database } from '../postgres/database.ts';

/**
 * A capability's list in the definitions file. Each item has a unique `key`. Applying a file makes
 * the stored items equal the list, in the transaction of the file.
 */
export interface DefinitionList {
  readonly name: string;
  /** Schema of the list. The default of the schema must be an empty list. */
  readonly schema: TSchema;
  /** True if keys that differ only in case are equal. Default: false. */
  readonly ignoresCase?: boolean;
  /** True if exports of an environment omit the list, and imports refuse it. Default: false. */
  readonly isLocal?: boolean;
  /** Checks what the schema cannot express. Also called if the list violates the schema. */
  check?(list: Place): void;
  readonly table: DefinitionsOf<never, Keyed>;
}

export interface DefinitionsOf<Item, StoredItem = Item> {
  /** Returns the stored items, sorted by id or, if they have no ids, by key. */
  read(db: Database, environmentId: number): Promise<StoredItem[]>;
  add(db: Database, environmentId: number, items: readonly Item[]): Promise<void>;
  change(db: Database, environmentId: number, item: Item): Promise<void>;
  remove(db: Database, environmentId: number, keys: readonly string[]): Promise<void>;
}

declare module '../context.ts' {
  interface System {
    /** Lists of capabilities, in the order of the registry. */
    readonly definitionLists: () => Promise<readonly DefinitionList[]>;
  }
}
