import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { verifyExport } from '../../../src/export/verify-export.ts';
import type { Sql, Tenant } from '../site/site.ts';
import { some } from './actor.ts';

/** A run that exported a part of time, up to the next one's. */
interface Part {
  readonly run_id: number;
  readonly delivered_to: string;
  /** As text, to the microsecond; null: the beginning. */
  readonly range_from: string | null;
  readonly range_to: string;
}

/**
 * Each run that went well has gone on where the one before had ended, and its folder has its files as their manifest
 * says, with every event that was stored in its part of time, once, and no other.
 */
export async function checkScheduledExports(sql: Sql, tenant: Tenant, schedule: string): Promise<string[]> {
  const parts = await sql<Part>(
    `select run_id, delivered_to, range_from::text, range_to::text from sluice.schedule_runs
     where environment_id = $1 and schedule_name = $2 and status = 'completed' order by range_to`,
    [tenant.environmentId, schedule],
  );
  const problems: string[] = [];
  let until: string | null = null;
  for (const part of parts) {
    if (part.range_from !== until) {
      problems.push(
        `${part.delivered_to} begins at ${part.range_from}, and the part before ended at ${until}`,
      );
    }
    until = part.range_to;
    problems.push(...(await checkPart(sql, tenant, part)));
  }
  return problems;
}

async function checkPart(sql: Sql, tenant: Tenant, { run_id, delivered_to }: Part): Promise<string[]> {
  if (delivered_to === null) return [`run ${run_id} was completed and delivered nowhere`];
  const { differences } = await verifyExport(delivered_to);
  const problems = differences.map(({ filename, problem }) => `${delivered_to}: ${filename} ${problem}`);
  const stored = await sql<{ event_id: string }>(
    `select event_id from sluice.events e join sluice.schedule_runs r on r.run_id = $2
     where e.environment_id = $1 and inserted_at < range_to and (range_from is null or inserted_at >= range_from)`,
    [tenant.environmentId, run_id],
  );
  const wanted = new Set(stored.map(({ event_id }) => event_id));
  const ids = await readEventIds(delivered_to);
  const found = new Set(ids);
  const say = (what: string, list: readonly string[]): void => {
    if (list.length > 0) problems.push(`${delivered_to} ${what} ${list.length} events: ${some(list)}`);
  };
  say(
    'lacks',
    [...wanted].filter((id) => !found.has(id)),
  );
  say(
    'has and should not',
    ids.filter((id) => !wanted.has(id)),
  );
  if (ids.length > found.size) problems.push(`${delivered_to} has ${ids.length - found.size} events twice`);
  return problems;
}

async function readEventIds(folder: string): Promise<string[]> {
  const files = (await readdir(folder)).filter((name) => name.startsWith('events'));
  const texts = await Promise.all(
    files.map(async (name) => gunzipSync(await readFile(join(folder, name))).toString('utf8')),
  );
  return texts
    .flatMap((text) => text.split('\n'))
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { event_id: string }).event_id);
}
