import { sql } from 'kysely';
import type { Entity } from '../../domain/entity.ts';
import type { Exclusion } from '../../domain/export.ts';
import { MAX_CATALOGUED_NAMES } from '../../domain/limits.ts';
import { isRejectColumn } from '../../domain/reject-columns.ts';
import type { Database } from '../../postgres/database.ts';
import { yielding } from '../../yielding.ts';
import { leftOut, nameTest } from '../filter/wildcard.ts';

/** A result of Postgres has 1664 columns at most. */
const maxColumns = 1500;
/** A load takes a header of 1 MiB. */
const maxHeaderBytes = 512 * 1024;

/** The properties that get a column each, and whether there may be others: those share one, as JSON. */
export interface PropertyColumns {
  readonly names: readonly string[];
  readonly hasOthers: boolean;
}

/** Those that the catalogue lists and that are not left out, in the order of their names' bytes. */
export async function listPropertyColumns(
  db: Database,
  environmentId: number,
  entity: Entity,
  exclusions: readonly Exclusion[],
): Promise<PropertyColumns> {
  const listed = await db
    .selectFrom('properties')
    .select(['key', 'is_auto_property'])
    .where('environment_id', '=', environmentId)
    .where('entity', '=', entity)
    .orderBy('key')
    .execute();
  const isLeftOut = nameTest(leftOut(exclusions, 'property'));
  const automatic = listed.filter((row) => row.is_auto_property).map(({ key }) => key);
  const hasNamesakes = await anyHas(db, environmentId, entity, automatic);
  const wanted: string[] = [];
  for await (const { key, is_auto_property: isAutomatic } of yielding(listed)) {
    if ((hasNamesakes || !isAutomatic) && !isLeftOut(key)) wanted.push(key);
  }
  const names = fitting(wanted);
  return { names, hasOthers: listed.length >= MAX_CATALOGUED_NAMES || names.length < wanted.length };
}

/** Metadata may hold something under the name of an automatic property; the catalogue then lists only the latter. */
async function anyHas(
  db: Database,
  environmentId: number,
  entity: Entity,
  names: readonly string[],
): Promise<boolean> {
  const found = await db
    .selectFrom(entity)
    .select('environment_id')
    .where('environment_id', '=', environmentId)
    .where(sql<boolean>`metadata ?| ${names}::text[]`)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

function fitting(names: readonly string[]): string[] {
  const kept: string[] = [];
  let bytes = 0;
  for (const name of names) {
    bytes += 2 * Buffer.byteLength(heading(name));
    if (kept.length === maxColumns || bytes > maxHeaderBytes) break;
    kept.push(name);
  }
  return kept;
}

const fixed = new Set(['user_id', 'company_id', 'metadata', 'first_seen_at', 'last_seen_at']);

/** What a property's column is headed; a load reads `metadata.x` as the property x. */
export function heading(name: string): string {
  const isTaken = fixed.has(name) || name.startsWith('metadata.') || isRejectColumn(name);
  return isTaken ? `metadata.${name}` : name;
}
