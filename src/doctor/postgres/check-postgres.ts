import pg from 'pg';
import type { Config } from '../../config.ts';
import { type Check, runChecks } from '../check.ts';
import type { Finding } from '../finding.ts';
import { checkClock } from './check-clock.ts';
import { checkConnections } from './check-connections.ts';
import { checkEventRetention } from './check-event-retention.ts';
import { checkMigrations } from './check-migrations.ts';
import { checkPrivileges } from './check-privileges.ts';
import { checkSettings } from './check-settings.ts';
import { checkSpace } from './check-space.ts';
import { checkVersion } from './check-version.ts';

const connectMs = 5_000;
const statementMs = 5_000;
const lookMs = 8_000;

/** All that is to be known of a server that should answer at `url`. Throws if it does not. */
export async function checkPostgres(url: string, config: Config): Promise<Finding[]> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice doctor',
    connectionTimeoutMillis: connectMs,
    // Ours, and no setting of the session: what that would be without us is looked at.
    query_timeout: statementMs,
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const looks: Readonly<Record<string, () => Promise<Finding[]>>> = {
      'postgres version': () => checkVersion(client),
      'postgres privileges': () => checkPrivileges(client, config.redisUrl === null),
      'postgres connections': () => checkConnections(client, config),
      'postgres settings': () => checkSettings(client),
      'postgres disk': () => checkSpace(client),
      'postgres clock': () => checkClock(client),
      migrations: () => checkMigrations(client),
      'event retention': () => checkEventRetention(client),
    };
    const findings: Finding[] = [];
    // One after another, since they share the connection: the clock's answer must not wait behind another's.
    for (const [name, run] of Object.entries(looks)) findings.push(...(await runChecks([lookOf(name, run)])));
    return findings;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function lookOf(name: string, run: Check['run']): Check {
  return {
    name,
    run,
    deadlineMs: lookMs,
    advice: 'The server did not answer this question; its log may tell why.',
  };
}
