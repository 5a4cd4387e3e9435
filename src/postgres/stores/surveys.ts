/** The SQL of surveys, as operators define them, and of their modules. */
import { sql } from 'kysely';
import { jsonArrayFrom } from 'kysely/helpers/postgres';
import type { StoredSurvey, SurveyItem, SurveyModule } from '../../domain/definitions.ts';
import type { Database } from '../database.ts';

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
    .where('environment_id', '=', environmentId)
    .where('key', '=', key)
    .returning('survey_id')
    .executeTakeFirstOrThrow();
  await db
    .deleteFrom('survey_modules')
    .where('survey_id', '=', survey_id)
    .where('key', '<>', sql<string>`all(${modules.map((module) => module.key)}::text[])`)
    .execute();
  await addModules(db, survey_id, modules);
}

/** Those that are there keep their ids. */
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
