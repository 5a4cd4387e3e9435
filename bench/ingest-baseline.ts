/**
 * The HTTP server of sluice with another way in behind it: what the commit window is compared with. Everything before,
 * the key, the body, the checks, is the same code. A process of its own; started by ingest-servers.ts.
 */
import { uuidv7 } from 'uuidv7';
import { readConfig } from '../src/config.ts';
import { openSystem, type System } from '../src/context.ts';
import { startHttpServer } from '../src/http/listen.ts';
import type { Ingest } from '../src/ingest/ingest.ts';
import type { EventRecord } from '../src/ingest/records.ts';
import { createLogger } from '../src/telemetry/logger.ts';

const nothing = async (): Promise<void> => undefined;

/** Commits nothing: what HTTP, key and checks cost alone. */
const atOnce: Ingest = {
  identifyUser: nothing,
  identifyCompany: nothing,
  track: nothing,
  async batch(_, read) {
    const { items, rejected } = await read();
    return { accepted: items.length, rejected };
  },
  drained: nothing,
};

/** What one would write first: a statement for each event, on a connection of the pool. */
function oneByOne({ pool }: System): Ingest {
  const insert = `
    insert into sluice.events
      (environment_id, event_id, event_name, user_id, company_id, source, inserted_at, metadata)
    select $1, $2, $3, $4, coalesce($5, (
      select company_id from sluice.users where environment_id = $1 and user_id = $4
    )), 'backend-http', clock_timestamp(), $6`;
  return {
    ...atOnce,
    async track({ environmentId, eventName, userId, companyId, metadata }: EventRecord) {
      const values = [environmentId, uuidv7(), eventName, userId, companyId, JSON.stringify(metadata)];
      await pool.query({ name: 'bench-insert-event', text: insert, values });
    },
  };
}

export const baselines = { 'at-once': () => atOnce, 'one-by-one': oneByOne } as const;

const config = readConfig(process.env);
const system = openSystem({
  config,
  databaseUrl: config.databaseUrl ?? '',
  log: createLogger('warn', 'bench'),
  role: 'bench',
  poolSize: config.poolSize,
});
const baseline = baselines[process.argv[2] as keyof typeof baselines](system);
const server = await startHttpServer({ ...system, ingest: baseline });
process.send?.(server.address);
process.once('disconnect', () => process.exit());
