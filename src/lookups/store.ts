import { type RawBuilder, sql } from 'kysely';
import { jsonArrayFrom } from 'kysely/helpers/postgres';
import {
  type Definitions,
  displayName,
  type ItemOf,
  type Keyed,
  type KeyedItem,
  type KeyedKind,
  type Kind,
  kinds,
  type Stored,
  type StoredDefinitions,
  type StoredOf,
  type StoredSurvey,
  type SurveyItem,
  type SurveyModule,
  type TitledItem,
  type TitledKind,
} from '../domain/definitions.ts';
import {
  columnOf,
  type Database,
  deleteWhere,
  rowsOf,
  selectWhere,
  updateWhere,
} from '../postgres/database.ts';
import type { DefinitionList, DefinitionsOf } from './seam.ts';

export const definitionsOf: { readonly [K in Kind]: DefinitionsOf<ItemOf<K>, StoredOf<K>> } = {
  segments: itemsTable({
    table: 'segments',
    id: 'segment_id',
    columns: [
      ...['key', 'title', 'usage', 'category', 'is_hidden', 'is_protected', 'status', 'made_by'],
      'definition',
    ],
  }),
  surveys: { read: readSurveys, add: addSurveys, change: changeSurvey, remove: removeFrom('surveys') },
  embeds: titledItems('embeds'),
  flows: titledItems('flows'),
  banners: titledItems('banners'),
  spotlights: titledItems('spotlights'),
  resource_center_modules: keyedItems('resource_center_modules'),
  checklists: keyedItems('checklists'),
  features: keyedItems('features'),
  event_retention: itemsTable({ table: 'event_retention', columns: ['key', 'days'], isDated: false }),
};

export function tablesOf(lists: readonly DefinitionList[]): ReadonlyMap<string, DefinitionList['table']> {
  return new Map<string, DefinitionList['table']>([
    ...kinds.map((kind) => [kind, definitionsOf[kind]] as const),
    ...lists.map(({ name, table }) => [name, table] as const),
  ]);
}

export function readDefinitions(
  db: Database,
  environmentId: number,
  lists: readonly DefinitionList[],
): Promise<StoredDefinitions> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute((transaction) => readAll(transaction, environmentId, lists));
}

/** First key of the advisory lock. The second key is the environment's id. */
const applyLock = 0x43415441;

export async function lockDefinitions(db: Database, environmentId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(${applyLock}, ${environmentId})`.execute(db);
}

export async function readAll(
  db: Database,
  environmentId: number,
  lists: readonly DefinitionList[],
): Promise<StoredDefinitions> {
  const entries: [string, readonly unknown[]][] = [];
  for (const [name, table] of tablesOf(lists)) entries.push([name, await table.read(db, environmentId)]);
  return Object.fromEntries(entries) as unknown as StoredDefinitions;
}

export function withoutIds(stored: StoredDefinitions): Definitions {
  const lists = Object.entries(stored).map(([name, list]) => [
    name,
    (list as readonly Numbered[]).map(withoutId),
  ]);
  return Object.fromEntries(lists) as Definitions;
}

interface Numbered extends Partial<Stored> {
  readonly modules?: readonly Numbered[];
}

function withoutId({ id: _, ...item }: Numbered): object {
  return item.modules === undefined ? item : { ...item, modules: item.modules.map(withoutId) };
}

interface ItemsTable {
  readonly table: string;
  /**
   * Column that is `id` in results, and by which items are sorted. Without such a column, the items
   * are sorted by key.
   */
  readonly id?: string;
  readonly columns: readonly string[];
  readonly kind?: Kind;
  readonly isDated?: boolean;
}

/** The columns are the fields of items, plus `environment_id`. */
export function itemsTable<Item extends Keyed, StoredItem = Item>({
  table,
  id,
  columns,
  kind,
  isDated = true,
}: ItemsTable): DefinitionsOf<Item, StoredItem> {
  const into = sql.table(table);
  const names = sql.join(columns.map((column) => sql.ref(column)));
  const selected = id === undefined ? names : sql`${sql.ref(id)} as id, ${names}`;
  return {
    async read(db, environmentId) {
      return rowsOf<StoredItem>(db)`
        select ${selected}
        from ${into}
        where ${isOf(environmentId, kind)}
        order by ${sql.ref(id ?? 'key')}`;
    },
    async add(db, environmentId, items) {
      const scope =
        kind === undefined ? { environment_id: environmentId } : { environment_id: environmentId, kind };
      const scoped = sql.join(Object.keys(scope).map((column) => sql.ref(column)));
      const rows = JSON.stringify(items.map((item) => ({ ...scope, ...item })));
      await sql`
        insert into ${into} (${scoped}, ${names})
        select ${scoped}, ${names} from json_populate_recordset(null::${into}, ${rows})`.execute(db);
    },
    async change(db, environmentId, item) {
      await sql`
        update ${into}
        set
          (${names}) = (select ${names} from json_populate_record(null::${into}, ${JSON.stringify(item)}))
          ${isDated ? sql`, updated_at = now()` : sql``}
        where ${isOf(environmentId, kind)} and key = ${item.key}`.execute(db);
    },
    remove: removeFrom(table, kind),
  };
}

function titledItems<StoredItem>(kind: TitledKind): DefinitionsOf<TitledItem, StoredItem> {
  return itemsTable({ table: 'titled_items', id: 'item_id', columns: ['key', 'title', 'type'], kind });
}

function keyedItems(kind: KeyedKind): DefinitionsOf<KeyedItem> {
  return itemsTable({ table: 'keyed_items', columns: ['key', 'display_name', 'data_type'], kind });
}

function removeFrom(table: ItemsTable['table'], kind?: Kind) {
  return async (db: Database, environmentId: number, keys: readonly string[]): Promise<void> => {
    await sql`
      delete from ${sql.table(table)}
      where ${isOf(environmentId, kind)} and key = any(${keys}::text[])`.execute(db);
  };
}

function isOf(environmentId: number, kind: Kind | undefined): RawBuilder<boolean> {
  return sql`environment_id = ${environmentId}${kind === undefined ? sql`` : sql` and kind = ${kind}`}`;
}

/** Lists features and events, sorted by key. A feature hides an event with the same name. */
export async function listFeaturesAndEvents(db: Database, environmentId: number): Promise<KeyedItem[]> {
  const features = await definitionsOf.features.read(db, environmentId);
  const events = await selectWhere(db, 'properties', { environmentId, entity: 'event_names' })
    .select('key')
    .execute();
  const items = new Map<string, KeyedItem>();
  for (const { key } of events) items.set(key, { key, display_name: displayName(key), data_type: 'event' });
  for (const feature of features) items.set(feature.key, feature);
  return [...items.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

export async function findFeaturesAndEvents(
  db: Database,
  environmentId: number,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  if (names.length === 0) return new Set();
  const keys = await columnOf<string>(db)`
    select key from properties
    where environment_id = ${environmentId} and entity = 'event_names' and key = any (${[...names]}::text[])
    union
    select key from keyed_items
    where environment_id = ${environmentId} and kind = 'features' and key = any (${[...names]}::text[])`;
  return new Set(keys);
}

async function readSurveys(db: Database, environmentId: number): Promise<StoredSurvey[]> {
  return selectWhere(db, 'surveys', { environmentId })
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
    .orderBy('survey_id')
    .execute();
}

async function addSurveys(db: Database, environmentId: number, items: readonly SurveyItem[]): Promise<void> {
  const surveys = await db
    .insertInto('surveys')
    .values(
      items.map(({ key, title, platform }) => ({ environment_id: environmentId, key, title, platform })),
    )
    .returning(['survey_id', 'key'])
    .execute();
  const modules = new Map(items.map((item) => [item.key, item.modules]));
  for (const { survey_id, key } of surveys) await addModules(db, survey_id, modules.get(key) ?? []);
}

async function changeSurvey(
  db: Database,
  environmentId: number,
  { key, title, platform, modules }: SurveyItem,
): Promise<void> {
  const { survey_id } = await updateWhere(db, 'surveys', { environmentId, key })
    .set({ title, platform, updated_at: sql`now()` })
    .returning('survey_id')
    .executeTakeFirstOrThrow();
  await deleteWhere(db, 'survey_modules', { surveyId: survey_id })
    .where('key', '<>', sql<string>`all(${modules.map((module) => module.key)}::text[])`)
    .execute();
  await addModules(db, survey_id, modules);
}

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
