import type { ClientBase } from 'pg';
import { readEventRetention } from '../../postgres/retention/overview.ts';
import { isMissingTable } from '../../postgres/sqlstate.ts';
import { type Finding, ok, warning } from '../finding.ts';

const check = 'event retention';
/** The workers prune once a day. */
const lateMs = 2 * 24 * 60 * 60 * 1000;

/** Whether events that outlived their retention go, as far as the latest pruning tells. */
export async function checkEventRetention(
  client: ClientBase,
  now: () => number = Date.now,
): Promise<Finding[]> {
  let found: Awaited<ReturnType<typeof readEventRetention>>;
  try {
    found = await readEventRetention(client);
  } catch (error) {
    // `migrations` tells of it.
    if (isMissingTable(error)) return [];
    throw error;
  }
  const { prunedAt, error, failingSince, eventsRemoved, archiveFiles } = found;
  if (prunedAt === null) return [ok(check, 'events have not been pruned yet')];
  if (error !== null) {
    const since = (failingSince ?? prunedAt).toISOString();
    const advice =
      "The next pruning tries again, `sluice prune` now. A lock timeout: an export, a backup or somebody's session reads the events for long.";
    return [warning(check, `pruning fails since ${since}: ${error}`, advice)];
  }
  if (now() - prunedAt.getTime() > lateMs) {
    return [warning(check, `events were last pruned at ${prunedAt.toISOString()}`, 'Is a worker running?')];
  }
  return [ok(check, `${eventsRemoved} events removed so far, ${archiveFiles} archives`)];
}
