/** The SQL of `sluice.rules`: the versions of an environment's rules. */
import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import type { Rules, RulesDocument } from '../../domain/rules.ts';
import { camel } from '../columns.ts';
import type { Database } from '../database.ts';

export interface AppliedRules extends Rules {
  readonly appliedAt: Date;
  /** The id of the API key; null: the command line. */
  readonly appliedBy: string | null;
}

const columns = camel('version', 'document', 'applied_at', 'applied_by');

/** Reads the rules that count now; null: none were ever applied. */
export async function readRules(db: Database, environmentId: number): Promise<AppliedRules | null> {
  const found = await db
    .selectFrom('rules')
    .select(columns)
    .where('environment_id', '=', environmentId)
    .orderBy('version', 'desc')
    .limit(1)
    .executeTakeFirst();
  return found ?? null;
}

/** Makes the rules of an environment what the document says, as its next version; the same rules again change nothing. */
export function applyRules(
  db: Database,
  environmentId: number,
  document: RulesDocument,
  appliedBy: string | null,
): Promise<AppliedRules> {
  return db.transaction().execute(async (transaction) => {
    await sql`select from environments where environment_id = ${environmentId} for no key update`.execute(
      transaction,
    );
    const before = await readRules(transaction, environmentId);
    if (before !== null && isDeepStrictEqual(before.document, document)) return before;
    return transaction
      .insertInto('rules')
      .values({
        environment_id: environmentId,
        version: (before?.version ?? 0) + 1,
        document: JSON.stringify(document),
        applied_by: appliedBy,
      })
      .returning(columns)
      .executeTakeFirstOrThrow();
  });
}

/** The version that counts now, as SQL. */
export const currentVersion = (environmentId: number) =>
  sql<number | null>`(select max(version) from rules where environment_id = ${environmentId})`;

/** Tells whether the rules of an environment called anything personal, ever: loads and mends may keep to an earlier version. */
export async function hasPersonalData(db: Database, environmentId: number): Promise<boolean> {
  const found = await db
    .selectFrom('rules')
    .select('version')
    .where('environment_id', '=', environmentId)
    .where(sql<boolean>`jsonb_path_exists(document, '$.*.properties.*.personal')`)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}
