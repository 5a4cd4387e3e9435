/**
 * `sluice doctor`: looks at everything that a service with this configuration stands on, and says what to do about what is
 * wrong. `examine` lists the checks; each stands in the file of what it looks at. A check may throw and it may hang: neither
 * stops the others. Nothing is started, migrated or left behind, and no finding holds a secret.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { embeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import type { FileStore } from '../files/file-store.ts';
import { openFileStore } from '../files/storage.ts';
import { explainConnection } from '../postgres/sqlstate.ts';
import { findDatabaseUrl } from '../provide-database.ts';
import { explainRedis } from '../queue/redis.ts';
import type { Variables } from '../sources/schedules/source.ts';
import { type Check, type Finding, failed, ok, runChecks, sentenceOf, warning } from './check.ts';
import {
  checkDisk,
  checkNode,
  checkPort,
  checkPublicUrl,
  checkSchedules,
  checkSmtp,
  checkStorage,
  judgeFolder,
} from './check-machine.ts';
import { checkPostgres, checkRedis } from './check-servers.ts';

/** Looks at all that a service with this configuration stands on. `variables` are those of the environment, for the schedules. Starts and migrates nothing, and never throws. */
export async function examine(config: Config, variables: Variables = {}): Promise<Finding[]> {
  return hideSecrets(await runChecks(checksOf(config, variables)), config);
}

function checksOf(config: Config, variables: Variables): Check[] {
  const files = openFileStore(config.storage, config.maxInflatedBytes);
  return [
    { name: 'node', deadlineMs: 2_000, run: () => checkNode(), advice: 'Install sluice anew.' },
    {
      name: 'postgres',
      deadlineMs: 90_000,
      run: () => checkDatabase(config, files),
      advice: 'Is the server running, and is DATABASE_URL right?',
      advise: (error) => explainConnection(error)?.advice ?? null,
    },
    {
      name: 'redis',
      deadlineMs: 15_000,
      run: () => checkRedis(config),
      advice: 'Is it running, and is REDIS_URL right?',
      advise: (error) => `Redis ${explainRedis(error)}`,
    },
    {
      name: 'storage',
      deadlineMs: 20_000,
      run: () => checkFiles(config, files),
      advice: adviseOnStorage(config),
    },
    { name: 'disk', deadlineMs: 5_000, run: () => checkDisk(config), advice: 'Is the disk mounted?' },
    {
      name: 'smtp',
      deadlineMs: 20_000,
      run: () => checkSmtp(config),
      advice:
        'Is SMTP_URL right, and may this machine reach that port? Without SMTP_URL messages go to the outbox.',
    },
    {
      name: 'inbox',
      deadlineMs: 5_000,
      run: () => checkInbox(config),
      advice: 'Is INBOX_DIR right, and its disk mounted?',
    },
    {
      name: 'schedules',
      deadlineMs: 5_000,
      run: () => checkSchedules(config, variables),
      advice: 'Is SCHEDULES_FILE right, and may this user read it?',
    },
    { name: 'port', deadlineMs: 10_000, run: () => checkPort(config), advice: 'Are HOST and PORT right?' },
    {
      name: 'public url',
      deadlineMs: 2_000,
      run: () => checkPublicUrl(config),
      advice: 'Set PUBLIC_URL as in https://sluice.example.com.',
    },
  ];
}

function adviseOnStorage({ storage }: Config): string {
  if (storage.kind === 's3') return 'See docs/storage.md for what the key must be allowed.';
  return `May this user write into ${storage.directory}, and is its disk mounted?`;
}

async function checkFiles({ storage }: Config, files: FileStore): Promise<Finding[]> {
  if (storage.kind === 'folder' && !existsSync(storage.directory))
    return [await judgeFolder('storage', storage.directory, 'DATA_DIR or STORAGE_URL')];
  return checkStorage(files);
}

async function checkInbox({ inboxDir }: Config): Promise<Finding[]> {
  if (inboxDir === null) return [ok('inbox', 'not set: no folder is watched')];
  return [await judgeFolder('inbox', inboxDir, 'INBOX_DIR')];
}

async function checkDatabase(config: Config, files: FileStore): Promise<Finding[]> {
  const url = await findDatabaseUrl(config);
  return url === undefined ? checkEmbedded(config.dataDir) : checkPostgres(url, config, files);
}

export async function checkEmbedded(dataDir: string): Promise<Finding[]> {
  const found = `no server runs on ${dataDir}: its version, settings and migrations were not looked at`;
  const stopped = warning(
    'postgres',
    found,
    'Run `sluice start`, or set DATABASE_URL; then `sluice doctor` again.',
  );
  return [stopped, await checkProgram(dataDir), await judgeFolder('data folder', dataDir, 'DATA_DIR')];
}

async function checkProgram(dataDir: string): Promise<Finding> {
  const check = 'embedded postgres';
  try {
    const { major, hasData } = await embeddedPostgres.inspect(join(dataDir, 'postgres'));
    return ok(
      check,
      `PostgreSQL ${major} is installed${hasData ? ', and the data is of that version' : '; no data yet'}`,
    );
  } catch (error) {
    return failed(check, sentenceOf(error), 'As it says; or set DATABASE_URL to a PostgreSQL of your own.');
  }
}

const shortest = 3;

/**
 * Takes the secrets of the configuration out of what was found: programs that we ask say in their own words what is wrong
 * with what they were given.
 */
export function hideSecrets(findings: readonly Finding[], config: Config): Finding[] {
  const secrets = secretsOf(config);
  const hide = (text: string): string =>
    secrets.reduce((shown, secret) => shown.replaceAll(secret, '[secret]'), text);
  return findings.map((each) => ({
    ...each,
    found: hide(each.found),
    advice: each.advice === null ? null : hide(each.advice),
  }));
}

/** Longest first, so that one that holds another goes as a whole. */
function secretsOf(config: Config): string[] {
  const { databaseUrl, redisUrl, smtpUrl, storage } = config;
  const credentials = storage.kind === 's3' ? storage.credentials : null;
  const found = [
    ...[databaseUrl, redisUrl, smtpUrl].flatMap(passwordsOf),
    config.apiKey,
    config.metricsToken,
    config.adminKey,
    credentials?.secretAccessKey,
    credentials?.sessionToken,
  ];
  return found
    .filter((secret): secret is string => typeof secret === 'string' && secret.length >= shortest)
    .sort((a, b) => b.length - a.length);
}

/** Returns the password as it stands in the URL, and as it is meant. */
function passwordsOf(url: string | null): string[] {
  if (url === null || !URL.canParse(url)) return [];
  const { password } = new URL(url);
  return [url, password, decode(password)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
