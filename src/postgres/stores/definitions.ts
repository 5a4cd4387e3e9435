/** The SQL of what operators define: `sluice.segments`, `surveys`, `titled_items`, `keyed_items` and `event_retention`. */
import { sql } from 'kysely';
import { jsonArrayFrom } from 'kysely/helpers/postgres';
import {
  type Definitions,
  displayName,
  type ItemOf,
  type KeyedItem,
  type KeyedKind,
  type Kind,
  type RetentionItem,
  type SegmentItem,
  type Stored,
  type StoredDefinitions,
  type StoredEmbed,
  type StoredOf,
  type StoredSegment,
  type StoredSurvey,
  type StoredTitled,
  type SurveyItem,
  type SurveyModule,
  type TitledItem,
  type TitledKind,
} from '../../domain/definitions.ts';
import type { Database } from '../database.ts';

/** The store of one kind of items. */
export interface DefinitionsOf<Item, StoredItem = Item> {
  /** Reads the items, sorted by id, or by key where there is none. */
  read(db: Database, environmentId: number): Promise<StoredItem[]>;
  add(db: Database, environmentId: number, items: readonly Item[]): Promise<void>;
  change(db: Database, environmentId: number, item: Item): Promise<void>;
  remove(db: Database, environmentId: number, keys: readonly string[]): Promise<void>;
}

export const definitionsOf: { readonly [K in Kind]: DefinitionsOf<ItemOf<K>, StoredOf<K>> } = {
  segments: segmentsTable(),
  surveys: { read: readSurveys, add: addSurveys, change: changeSurvey, remove: removeFrom('surveys') },
  // A check constraint knows the types of embeds.
  embeds: titledItemsTable('embeds') as DefinitionsOf<ItemOf<'embeds'>, StoredEmbed>,
  flows: titledItemsTable('flows'),
  banners: titledItemsTable('banners'),
  spotlights: titledItemsTable('spotlights'),
  resource_center_modules: keyedItemsTable('resource_center_modules'),
  checklists: keyedItemsTable('checklists'),
  features: keyedItemsTable('features'),
  event_retention: retentionTable(),
};

/** Reads everything that is defined for an environment, as of one moment. */
export function readDefinitions(db: Database, environmentId: number): Promise<StoredDefinitions> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute((transaction) => readAll(transaction, environmentId));
}

/** The class half of a two-key advisory lock. */
const applyLock = 0x43415441;

/** Reads the definitions and keeps others from changing them until the transaction ends. */
export async function lockDefinitions(db: Database, environmentId: number): Promise<StoredDefinitions> {
  await sql`select pg_advisory_xact_lock(${applyLock}, ${environmentId})`.execute(db);
  return readAll(db, environmentId);
}

async function readAll(db: Database, environmentId: number): Promise<StoredDefinitions> {
  return {
    segments: await definitionsOf.segments.read(db, environmentId),
    surveys: await definitionsOf.surveys.read(db, environmentId),
    embeds: await definitionsOf.embeds.read(db, environmentId),
    flows: await definitionsOf.flows.read(db, environmentId),
    banners: await definitionsOf.banners.read(db, environmentId),
    spotlights: await definitionsOf.spotlights.read(db, environmentId),
    resource_center_modules: await definitionsOf.resource_center_modules.read(db, environmentId),
    checklists: await definitionsOf.checklists.read(db, environmentId),
    features: await definitionsOf.features.read(db, environmentId),
    event_retention: await definitionsOf.event_retention.read(db, environmentId),
  };
}

/** Returns the definitions as a file has them. */
export function withoutIds(stored: StoredDefinitions): Definitions {
  const { segments, surveys, embeds, flows, banners, spotlights, ...others } = stored;
  return {
    segments: segments.map(withoutId),
    surveys: surveys.map(({ id: _, modules, ...item }) => ({
      ...item,
      modules: modules.map(({ id: _, ...module }) => module),
    })),
    embeds: embeds.map(withoutId),
    flows: flows.map(withoutId),
    banners: banners.map(withoutId),
    spotlights: spotlights.map(withoutId),
    ...others,
  };
}

function withoutId<Item extends Stored>({ id: _, ...item }: Item): Omit<Item, 'id'> {
  return item;
}

/** Removes items by key, surveys with their modules. */
function removeFrom(table: 'segments' | 'surveys' | 'event_retention') {
  return async (db: Database, environmentId: number, keys: readonly string[]): Promise<void> => {
    await db
      .deleteFrom(table)
      .where('environment_id', '=', environmentId)
      .where('key', '=', sql<string>`any(${keys}::text[])`)
      .execute();
  };
}

function segmentsTable(): DefinitionsOf<SegmentItem, StoredSegment> {
  const toRow = (item: SegmentItem) => ({ ...item, definition: JSON.stringify(item.definition) });
  return {
    async read(db, environmentId) {
      const rows = await db
        .selectFrom('segments')
        .select(['segment_id as id', 'key', 'title', 'usage', 'category'])
        .select(['is_hidden', 'is_protected', 'status', 'definition'])
        .where('environment_id', '=', environmentId)
        .orderBy('segment_id')
        .execute();
      // A check constraint holds the definition to be an object.
      return rows.map((row) => ({ ...row, definition: row.definition as object }));
    },
    async add(db, environmentId, items) {
      await db
        .insertInto('segments')
        .values(items.map((item) => ({ environment_id: environmentId, ...toRow(item) })))
        .execute();
    },
    async change(db, environmentId, item) {
      await db
        .updateTable('segments')
        .set({ ...toRow(item), updated_at: sql`now()` })
        .where((eb) => eb.and({ environment_id: environmentId, key: item.key }))
        .execute();
    },
    remove: removeFrom('segments'),
  };
}

/** `sluice.titled_items`, as far as it is about one kind. */
function titledItemsTable(kind: TitledKind): DefinitionsOf<TitledItem, StoredTitled> {
  return {
    read: (db, environmentId) =>
      db
        .selectFrom('titled_items')
        .select(['item_id as id', 'key', 'title', 'type'])
        .where((eb) => eb.and({ environment_id: environmentId, kind }))
        .orderBy('item_id')
        .execute(),
    async add(db, environmentId, items) {
      await db
        .insertInto('titled_items')
        .values(items.map((item) => ({ environment_id: environmentId, kind, ...item })))
        .execute();
    },
    async change(db, environmentId, item) {
      await db
        .updateTable('titled_items')
        .set({ ...item, updated_at: sql`now()` })
        .where((eb) => eb.and({ environment_id: environmentId, kind, key: item.key }))
        .execute();
    },
    remove: removeOf('titled_items', kind),
  };
}

/** `sluice.keyed_items`, as far as it is about one kind. */
function keyedItemsTable(kind: KeyedKind): DefinitionsOf<KeyedItem> {
  return {
    read: (db, environmentId) =>
      db
        .selectFrom('keyed_items')
        .select(['key', 'display_name', 'data_type'])
        .where((eb) => eb.and({ environment_id: environmentId, kind }))
        .orderBy('key')
        .execute(),
    async add(db, environmentId, items) {
      await db
        .insertInto('keyed_items')
        .values(items.map((item) => ({ environment_id: environmentId, kind, ...item })))
        .execute();
    },
    async change(db, environmentId, item) {
      await db
        .updateTable('keyed_items')
        .set({ ...item, updated_at: sql`now()` })
        .where((eb) => eb.and({ environment_id: environmentId, kind, key: item.key }))
        .execute();
    },
    remove: removeOf('keyed_items', kind),
  };
}

function removeOf(table: 'titled_items' | 'keyed_items', kind: TitledKind | KeyedKind) {
  return async (db: Database, environmentId: number, keys: readonly string[]): Promise<void> => {
    await db
      .deleteFrom(table)
      .where((eb) => eb.and({ environment_id: environmentId, kind }))
      .where('key', '=', sql<string>`any(${keys}::text[])`)
      .execute();
  };
}

function retentionTable(): DefinitionsOf<RetentionItem> {
  return {
    read: (db, environmentId) =>
      db
        .selectFrom('event_retention')
        .select(['key', 'days'])
        .where('environment_id', '=', environmentId)
        .orderBy('key')
        .execute(),
    async add(db, environmentId, items) {
      await db
        .insertInto('event_retention')
        .values(items.map((item) => ({ environment_id: environmentId, ...item })))
        .execute();
    },
    async change(db, environmentId, { key, days }) {
      await db
        .updateTable('event_retention')
        .set({ days })
        .where((eb) => eb.and({ environment_id: environmentId, key }))
        .execute();
    },
    remove: removeFrom('event_retention'),
  };
}

/**
 * Lists the defined features and every name that an event was tracked under, by key. The operator's words for a feature win
 * over those of an event with its key.
 */
export async function listFeaturesAndEvents(db: Database, environmentId: number): Promise<KeyedItem[]> {
  const features = await definitionsOf.features.read(db, environmentId);
  const events = await db
    .selectFrom('event_names')
    .select('event_name as key')
    .where('environment_id', '=', environmentId)
    .execute();
  const items = new Map<string, KeyedItem>();
  for (const { key } of events) items.set(key, { key, display_name: displayName(key), data_type: 'event' });
  for (const feature of features) items.set(feature.key, feature);
  return [...items.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Returns those of the names that events were tracked under, or that are keys of defined features. */
export async function findFeaturesAndEvents(
  db: Database,
  environmentId: number,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  if (names.length === 0) return new Set();
  const rows = await db
    .selectFrom('event_names')
    .select('event_name as name')
    .where('environment_id', '=', environmentId)
    .where('event_name', 'in', names)
    .union(
      db
        .selectFrom('keyed_items')
        .select('key as name')
        .where((eb) => eb.and({ environment_id: environmentId, kind: 'features' }))
        .where('key', 'in', names),
    )
    .execute();
  return new Set(rows.map((row) => row.name));
}

export async function readSurveys(db: Database, environmentId: number): Promise<StoredSurvey[]> {
  return db
    .selectFrom('surveys')
    .select(({ selectFrom }) => [
      'survey_id as id',
      'key',
      'title',
      'platform',
      jsonArrayFrom(
        selectFrom('survey_modules')
          .select(['module_id as id', 'survey_modules.key', 'type', 'question'])
          .whereRef('survey_modules.survey_id', '=', 'surveys.survey_id')
          .orderBy('position'),
      ).as('modules'),
    ])
    .where('environment_id', '=', environmentId)
    .orderBy('survey_id')
    .execute();
}

export async function addSurveys(
  db: Database,
  environmentId: number,
  items: readonly SurveyItem[],
): Promise<void> {
  const made = await db
    .insertInto('surveys')
    .values(
      items.map(({ key, title, platform }) => ({ environment_id: environmentId, key, title, platform })),
    )
    .returning(['survey_id', 'key'])
    .execute();
  const modules = new Map(items.map((item) => [item.key, item.modules]));
  for (const { survey_id, key } of made) await addModules(db, survey_id, modules.get(key) ?? []);
}

export async function changeSurvey(
  db: Database,
  environmentId: number,
  { key, title, platform, modules }: SurveyItem,
): Promise<void> {
  const { survey_id } = await db
    .updateTable('surveys')
    .set({ title, platform, updated_at: sql`now()` })
    .where((eb) => eb.and({ environment_id: environmentId, key }))
    .returning('survey_id')
    .executeTakeFirstOrThrow();
  await db
    .deleteFrom('survey_modules')
    .where('survey_id', '=', survey_id)
    .where('key', '<>', sql<string>`all(${modules.map((module) => module.key)}::text[])`)
    .execute();
  await addModules(db, survey_id, modules);
}

/** Existing modules keep their ids. */
async function addModules(db: Database, surveyId: number, modules: readonly SurveyModule[]): Promise<void> {
  if (modules.length === 0) return;
  await db
    .insertInto('survey_modules')
    .values(modules.map((module, index) => ({ survey_id: surveyId, position: index + 1, ...module })))
    .onConflict((conflict) =>
      conflict.columns(['survey_id', 'key']).doUpdateSet(({ ref }) => ({
        position: ref('excluded.position'),
        type: ref('excluded.type'),
        question: ref('excluded.question'),
      })),
    )
    .execute();
}
