import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { type Entity, entities } from '../../../src/domain/entity.ts';
import type { PlanSummary } from '../../../src/domain/load.ts';
import type { LoadContext } from '../../../src/load/context.ts';
import type { Json, Profiles, StoredProfile } from './serial-oracle.ts';

interface PlannedRow {
  readonly entity: Entity;
  readonly key: string;
  readonly before: StoredProfile | null;
  readonly after: StoredProfile | null;
}

interface StoredRow extends Pick<PlannedRow, 'entity' | 'key'> {
  readonly before: unknown;
  readonly after: unknown;
  readonly company_before: string | null;
  readonly company_after: string | null;
}

export async function readPlannedRows(context: LoadContext, jobId: string): Promise<PlannedRow[]> {
  const { rows } = await sql<StoredRow>`
    select r.entity, r.key, r.before, r.after, r.company_before, r.company_after
    from planned_rows r
    join loads l using (load_id)
    where l.job_id = ${jobId}
    order by r.entity, r.key`.execute(context.db);
  return rows.map((row) => {
    const { entity } = row;
    const profile = (metadata: unknown, company: string | null) =>
      ({ metadata, ...(entity === 'users' && { company }) }) as StoredProfile;
    return {
      entity,
      key: row.key,
      before: row.before === null ? null : profile(row.before, row.company_before),
      after: row.after === null ? null : profile(row.after, row.company_after),
    };
  });
}

export function expectedRows(before: Profiles, after: Profiles): PlannedRow[] {
  return [...entities]
    .sort()
    .flatMap((entity) =>
      [...new Set([...Object.keys(before[entity]), ...Object.keys(after[entity])])].map((key) => ({
        entity,
        key,
        before: before[entity][key] ?? null,
        after: after[entity][key] ?? null,
      })),
    )
    .filter((row) => !isDeepStrictEqual(row.before, row.after))
    .sort((a, b) => (a.entity === b.entity ? (Buffer.from(a.key) < Buffer.from(b.key) ? -1 : 1) : 0));
}

export function expectedChanges(rows: readonly PlannedRow[]): Pick<PlanSummary, 'profiles' | 'values'> {
  const values = { appear: 0, change: 0, go: 0, retype: 0 };
  const profiles = {
    users: { new: 0, changed: 0, removed: 0 },
    companies: { new: 0, changed: 0, removed: 0 },
  };
  for (const { entity, before, after } of rows) {
    if (before === null) profiles[entity].new++;
    else if (after === null) profiles[entity].removed++;
    else profiles[entity].changed++;
    const old = before?.metadata ?? {};
    const now = after?.metadata ?? {};
    for (const name of new Set([...Object.keys(old), ...Object.keys(now)])) {
      const was = old[name];
      const is = now[name];
      if (was === undefined) values.appear++;
      else if (is === undefined) values.go++;
      else if (!isDeepStrictEqual(was, is)) values.change++;
      if (was !== undefined && is !== undefined && typeOf(was) !== typeOf(is)) values.retype++;
    }
  }
  return { profiles, values };
}

function typeOf(value: Json): string {
  if (Array.isArray(value)) return 'array';
  return value === null ? 'null' : typeof value;
}
