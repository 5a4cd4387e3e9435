import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { pino } from 'pino';
import { createDatabase } from '../../../src/postgres/database.ts';
import { createPool } from '../../../src/postgres/pool.ts';
import { createApiKey } from '../../../src/postgres/stores/api-keys.ts';
import { createEnvironment, ensureDefaultEnvironment } from '../../../src/postgres/stores/environments.ts';
import { prepareDatabase } from '../../../src/provide-database.ts';
import { freePort } from '../../support/free-port.ts';
import { type PrivatePostgres, startPrivatePostgres } from '../../support/private-postgres.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import type { Journal } from '../journal.ts';
import type { Options } from '../options.ts';
import { until } from '../waiting.ts';
import { Member } from './member.ts';

/** Where the soak's own sessions are told from those of the service. */
export const ownSession = 'soak';

export interface Tenant {
  readonly environmentId: number;
  readonly name: string;
  readonly key: string;
}

/** Rows of one statement; int8 comes as number. */
export type Sql = <Row extends object>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

/** Databases, folder and processes, as an operator would set them up on several machines. */
export interface Site {
  readonly folder: string;
  readonly filesDir: string;
  readonly databaseUrl: string;
  readonly postgres: PrivatePostgres;
  /** `null` if the queue lives in PostgreSQL. */
  readonly redis: TestRedis | null;
  readonly tenants: readonly Tenant[];
  readonly members: readonly Member[];
  /** Addresses of the servers. */
  readonly urls: readonly string[];
  readonly inboxDir: string;
  readonly sql: Sql;
  close(): Promise<void>;
}

const serverCount = 2;
const workerCount = 3;

export async function openSite(folder: string, options: Options, journal: Journal): Promise<Site> {
  const logFolder = join(folder, 'logs');
  mkdirSync(logFolder, { recursive: true });
  const postgres = await startPrivatePostgres(join(folder, 'postgres'));
  const redis = options.queue === 'redis' ? await startRedis({ appends: true }) : null;
  await prepareDatabase(postgres.url, redis === null, pino({ level: 'silent' }));
  const pool = createPool({ url: postgres.url, max: 4, applicationName: ownSession });
  pool.on('error', () => undefined);
  const tenants = await createTenants(pool);
  const inboxDir = join(folder, 'inbox');
  const variables: Record<string, string> = {
    DATABASE_URL: postgres.url,
    DATA_DIR: join(folder, 'data'),
    LOG_LEVEL: 'info',
    // A machine that is busy with other tests is no reason to refuse a request.
    MAX_EVENT_LOOP_DELAY_MS: '0',
    // Small, so that files of a few thousand records have several.
    CHUNK_BYTES: '32k',
    ...(redis && { REDIS_URL: redis.url }),
    INBOX_DIR: inboxDir,
    INBOX_SCAN_MS: '500',
    INBOX_STABLE_MS: '1000',
  };
  const urls: string[] = [];
  const members: Member[] = [];
  for (let number = 0; number < serverCount; number++) {
    // The same one every time it is started: links lead there.
    const port = await freePort();
    urls.push(`http://127.0.0.1:${port}`);
    members.push(createMember('serve', number, { ...variables, PORT: String(port) }));
  }
  for (let number = 0; number < workerCount; number++) members.push(createMember('work', number, variables));

  function createMember(role: 'serve' | 'work', number: number, own: Record<string, string>): Member {
    return new Member(role, `${role}-${number}`, { mortal: number > 0, variables: own, logFolder, journal });
  }

  // However we end, nothing of ours stays. (The embedded PostgreSQL sees to that itself.)
  process.once('exit', () => {
    for (const member of members) member.killAtOnce();
    redis?.killAtOnce();
  });
  for (const member of members) member.start();
  const site: Site = {
    folder,
    filesDir: join(folder, 'data', 'files'),
    databaseUrl: postgres.url,
    postgres,
    redis,
    tenants,
    members,
    urls,
    inboxDir,
    sql: async <Row extends object>(text: string, values: readonly unknown[] = []) =>
      (await pool.query<Row>(text, [...values])).rows,
    async close() {
      await Promise.all(members.map((member) => member.end('SIGKILL')));
      await pool.end();
      await redis?.stop();
      await postgres.close();
    },
  };
  try {
    await allAnswer(urls);
  } catch (error) {
    await site.close();
    throw error;
  }
  return site;
}

async function createTenants(pool: pg.Pool): Promise<Tenant[]> {
  const db = createDatabase(pool);
  const { environment, key } = await ensureDefaultEnvironment(db);
  if (key === null) throw new Error('the database was not empty');
  const tenants: Tenant[] = [{ ...environment, key }];
  for (const name of ['second', 'third']) {
    const more = await createEnvironment(db, name);
    tenants.push({ ...more, key: (await createApiKey(db, more.environmentId, { label: 'soak' })).key });
  }
  return tenants;
}

/** Throws if one of the servers does not, on a machine that may be very busy. */
async function allAnswer(urls: readonly string[]): Promise<void> {
  for (const url of urls) {
    const answered = await until(async () => (await fetch(`${url}/health/ready`)).ok || null, {
      timeoutMs: 150_000,
    });
    if (answered === null) throw new Error(`the server at ${url} does not answer; see its log`);
  }
}
