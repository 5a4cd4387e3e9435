/** Makes an environment's definitions equal those of a file. */

import { isDeepStrictEqual } from 'node:util';
import { listFieldChanges } from '../base/difference.ts';
import { UsageError } from '../cli/errors.ts';
import { defineSection, type ItemChange } from '../cli/seam.ts';
import type { Act } from '../domain/act.ts';
import type { Definitions, ItemOf, Keyed, Kind, Lists, StoredSegment } from '../domain/definitions.ts';
import { inOneTransaction } from '../postgres/acts.ts';
import type { Database } from '../postgres/database.ts';
import { definitionsFile } from './definitions.ts';
import type { DefinitionList, DefinitionsOf } from './seam.ts';
import { lockDefinitions, readAll, tablesOf, withoutIds } from './store.ts';

export type DefinitionChanges = { readonly [K in Kind]: Changes<ItemOf<K>> };

export function changesByList(changes: DefinitionChanges): readonly (readonly [string, Changes<Keyed>])[] {
  return Object.entries<Changes<Keyed>>(changes);
}

interface ApplyOptions {
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly lists: readonly DefinitionList[];
}

export interface Applied {
  readonly changes: DefinitionChanges;
  /**
   * Protected segments that the file would remove. Unless `force` is set, they prevent all writes.
   */
  readonly blockedBy: readonly string[];
}

/** Number of rows in a statement, which has at most 65 535 parameters. */
const batchRows = 1_000;

/**
 * Makes the environment's definitions equal `definitions`, in one transaction. Keeps segments that
 * were created by API calls, even if `definitions` lacks them.
 */
export function applyDefinitions(
  db: Database,
  environmentId: number,
  definitions: Definitions,
  { dryRun, force, lists }: ApplyOptions,
): Promise<Applied> {
  return inOneTransaction(db, async (transaction) => {
    const plan = await planDefinitions(transaction, environmentId, definitions, { prune: true, lists });
    const blockedBy = force ? [] : plan.blockedBy;
    if (!dryRun && blockedBy.length === 0) await plan.write();
    return { changes: plan.changes, blockedBy };
  });
}

/**
 * Computes the changes. Locks the environment's definitions until the transaction ends. Without
 * `prune`, keeps items that `definitions` lacks.
 */
export async function planDefinitions(
  transaction: Database,
  environmentId: number,
  definitions: Definitions,
  { prune, lists }: Pick<ApplyOptions, 'lists'> & { readonly prune: boolean },
): Promise<Applied & { write(): Promise<void> }> {
  await lockDefinitions(transaction, environmentId);
  const stored = await readAll(transaction, environmentId, lists);
  const fileKeys = new Set(definitions.segments.map(({ key }) => key));
  const segments = stored.segments.filter(({ made_by, key }) => made_by === 'file' || fileKeys.has(key));
  const compared = compare(withoutIds({ ...stored, segments }), definitions);
  const changes = prune ? compared : keepItems(compared);
  return {
    changes,
    blockedBy: protectedAmong(segments, changes.segments.removed),
    async write() {
      const tables = tablesOf(lists);
      for (const [name, ofList] of changesByList(changes)) {
        const table = tables.get(name) as DefinitionsOf<Keyed> | undefined;
        if (table !== undefined) await write(transaction, environmentId, table, ofList);
      }
    },
  };
}

export function describeApplied(
  environmentId: number,
  { changes, blockedBy }: Applied,
  { dryRun }: { readonly dryRun: boolean },
): Act | null {
  const lists = changesByList(changes).map(([, ofList]) => ofList);
  const details = {
    added: lists.reduce((total, { added }) => total + added.length, 0),
    changed: lists.reduce((total, { changed }) => total + changed.length, 0),
    removed: lists.reduce((total, { removed }) => total + removed.length, 0),
  };
  const isWritten = !dryRun && blockedBy.length === 0 && Object.values(details).some((count) => count > 0);
  return isWritten ? { action: 'definitions.applied', environmentId, thing: null, details } : null;
}

function compare(stored: Lists, definitions: Lists): DefinitionChanges {
  const entries = Object.entries(stored).map(([name, items]) => [
    name,
    compareItems(items, definitions[name] ?? []),
  ]);
  return Object.fromEntries(entries) as DefinitionChanges;
}

function keepItems(changes: DefinitionChanges): DefinitionChanges {
  const entries = changesByList(changes).map(([name, ofList]) => {
    const { removed: kept, unchanged } = ofList;
    return [name, { ...ofList, removed: [], unchanged: unchanged + kept.length }];
  });
  return Object.fromEntries(entries) as DefinitionChanges;
}

function protectedAmong(segments: readonly StoredSegment[], removed: readonly string[]): string[] {
  const keys = new Set(removed);
  return segments.filter(({ key, is_protected }) => is_protected && keys.has(key)).map(({ key }) => key);
}

async function write(
  db: Database,
  environmentId: number,
  table: DefinitionsOf<Keyed>,
  { added, changed, removed }: Changes<Keyed>,
): Promise<void> {
  if (removed.length > 0) await table.remove(db, environmentId, removed);
  for (const { item } of changed) await table.change(db, environmentId, item);
  for (let from = 0; from < added.length; from += batchRows) {
    await table.add(db, environmentId, added.slice(from, from + batchRows));
  }
}

interface Changes<Item> {
  readonly added: readonly Item[];
  readonly changed: readonly ChangedItem<Item>[];
  readonly removed: readonly string[];
  readonly unchanged: number;
}

interface ChangedItem<Item> {
  readonly before: Item;
  readonly item: Item;
  readonly fields: readonly string[];
}

function compareItems<Item extends Keyed>(stored: readonly Item[], items: readonly Item[]): Changes<Item> {
  const remaining = new Map(stored.map((item) => [item.key, item]));
  const added: Item[] = [];
  const changed: ChangedItem<Item>[] = [];
  for (const item of items) {
    const before = remaining.get(item.key);
    remaining.delete(item.key);
    if (before === undefined) added.push(item);
    else {
      const fields = changedFields(before, item);
      if (fields.length > 0) changed.push({ before, item, fields });
    }
  }
  const unchanged = items.length - added.length - changed.length;
  return { added, changed, removed: [...remaining.keys()], unchanged };
}

function changedFields<Item extends object>(before: Item, after: Item): string[] {
  return (Object.keys(after) as (keyof Item & string)[]).filter(
    // Compares values as they are stored, because JSON stores -0 as 0.
    (name) => !isDeepStrictEqual(before[name], JSON.parse(JSON.stringify(after[name]))),
  );
}

/** The section with the definitions in a file that describes a whole environment. */
export const definitionsSection = (lists: readonly DefinitionList[]) =>
  defineSection({
    name: 'definitions',
    open: async () => ({
      file: definitionsFile(lists),
      async plan(db, environmentId, declared, { prune }) {
        const definitions = declared as Definitions;
        const plan = await planDefinitions(db, environmentId, definitions, { prune, lists });
        const { blockedBy } = plan;
        if (blockedBy.length > 0) {
          throw new UsageError(
            `The definitions lack protected segments (${blockedBy.join(', ')}). Put them back, or apply once with is_protected: false.`,
          );
        }
        if (!prune) await requireDistinct(db, environmentId, definitions, lists);
        return {
          changes: listItems(plan.changes),
          async write(acts) {
            await plan.write();
            const act = describeApplied(environmentId, plan, { dryRun: false });
            if (act !== null) await acts.record(db, act);
          },
        };
      },
    }),
  });

/** Refuses a key that differs only in case from a stored one that is kept. @throws UsageError */
async function requireDistinct(
  db: Database,
  environmentId: number,
  definitions: Definitions,
  lists: readonly DefinitionList[],
): Promise<void> {
  for (const { name, table } of lists.filter(({ ignoresCase }) => ignoresCase)) {
    const declared = new Map(listOf(definitions, name).map((key) => [key.toLowerCase(), key]));
    for (const { key } of await table.read(db, environmentId)) {
      const rival = declared.get(key.toLowerCase()) ?? key;
      if (rival !== key)
        throw new UsageError(`${name} has ${rival}, and ${key} is stored. Use one form, or --prune.`);
    }
  }
}

const listOf = (definitions: Lists, name: string): string[] =>
  (definitions[name] ?? []).map(({ key }) => key);

function listItems(changes: DefinitionChanges): ItemChange[] {
  return changesByList(changes).flatMap(([kind, { added, changed, removed }]) => {
    const name = (key: string): string => `${kind}.${key}`;
    return [
      ...added.map(({ key }) => ({ action: 'add', item: name(key), fields: [] }) as const),
      ...changed.map(({ before, item }) => {
        return { action: 'change', item: name(item.key), fields: listFieldChanges(before, item) } as const;
      }),
      ...removed.map((key) => ({ action: 'remove', item: name(key), fields: [] }) as const),
    ];
  });
}
