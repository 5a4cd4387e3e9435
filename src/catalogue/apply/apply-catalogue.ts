import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import type { ItemTable } from '../items/item-table.ts';
import { type CatalogueItems, type ItemOf, type Kind, kinds, type StoredSegment } from '../items/items.ts';
import { readItems, tables, withoutIds } from '../items/tables.ts';
import { type Changes, compareItems } from './compare-items.ts';

export interface ApplyOptions {
  /** Find out what would change, and write nothing. */
  readonly dryRun: boolean;
  /** Remove protected segments too. */
  readonly force: boolean;
}

export type CatalogueChanges = { readonly [K in Kind]: Changes<ItemOf<K>> };

export interface Applied {
  readonly changes: CatalogueChanges;
  /** Keys of protected segments that are to be removed; unless forced, nothing is written because of them. */
  readonly blockedBy: readonly string[];
}

/** Serialises the applies of one environment; the class half of a two-key advisory lock. */
const applyLock = 0x43415441;
/** Rows of one insert: a statement takes 65 535 parameters. */
const batchRows = 1_000;

/** Makes an environment's catalogue what the items say, no more and no less, in one transaction. */
export function applyCatalogue(
  db: Database,
  environmentId: number,
  wanted: CatalogueItems,
  { dryRun, force }: ApplyOptions,
): Promise<Applied> {
  return db.transaction().execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(${applyLock}, ${environmentId})`.execute(transaction);
    const stored = await readItems(transaction, environmentId);
    const changes = compare(withoutIds(stored), wanted);
    const blockedBy = force ? [] : protectedAmong(stored.segments, changes.segments.removed);
    if (!dryRun && blockedBy.length === 0) {
      for (const kind of kinds) await write(transaction, environmentId, kind, changes);
    }
    return { changes, blockedBy };
  });
}

function compare(stored: CatalogueItems, wanted: CatalogueItems): CatalogueChanges {
  return {
    segments: compareItems(stored.segments, wanted.segments),
    surveys: compareItems(stored.surveys, wanted.surveys),
    embeds: compareItems(stored.embeds, wanted.embeds),
    resource_center_modules: compareItems(stored.resource_center_modules, wanted.resource_center_modules),
    checklists: compareItems(stored.checklists, wanted.checklists),
    features: compareItems(stored.features, wanted.features),
    event_retention: compareItems(stored.event_retention, wanted.event_retention),
  };
}

function protectedAmong(segments: readonly StoredSegment[], removed: readonly string[]): string[] {
  const keys = new Set(removed);
  return segments.filter(({ key, is_protected }) => is_protected && keys.has(key)).map(({ key }) => key);
}

async function write<K extends Kind>(
  db: Database,
  environmentId: number,
  kind: K,
  all: CatalogueChanges,
): Promise<void> {
  const table: Pick<ItemTable<ItemOf<K>>, 'add' | 'change' | 'remove'> = tables[kind];
  const { added, changed, removed }: Changes<ItemOf<K>> = all[kind];
  if (removed.length > 0) await table.remove(db, environmentId, removed);
  for (const { item } of changed) await table.change(db, environmentId, item);
  for (let from = 0; from < added.length; from += batchRows) {
    await table.add(db, environmentId, added.slice(from, from + batchRows));
  }
}
