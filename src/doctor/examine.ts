import type { Config } from '../config.ts';
import { openFileStore } from '../files/storage.ts';
import { findDatabaseUrl } from '../postgres/provide.ts';
import type { Variables } from '../schedules/placeholders.ts';
import { type Check, runChecks } from './check.ts';
import { checkDisk } from './check-disk.ts';
import { checkEmbedded } from './check-embedded.ts';
import { checkNode } from './check-node.ts';
import { checkPublicUrl } from './check-public-url.ts';
import { checkRedis } from './check-redis.ts';
import { checkSchedules } from './check-schedules.ts';
import { checkSmtp } from './check-smtp.ts';
import { checkStorage } from './check-storage.ts';
import { type Finding, ok } from './finding.ts';
import { hideSecrets } from './hide-secrets.ts';
import { judgeFolder } from './judge-folder.ts';
import { checkPostgres } from './postgres/check-postgres.ts';

/** Looks at all that a service with this configuration stands on. `variables` are those of the environment, for the schedules. Starts and migrates nothing, and never throws. */
export async function examine(config: Config, variables: Variables = {}): Promise<Finding[]> {
  return hideSecrets(await runChecks(checksOf(config, variables)), config);
}

function checksOf(config: Config, variables: Variables): Check[] {
  const files = openFileStore(config.storage, config.maxInflatedBytes);
  return [
    {
      name: 'node',
      deadlineMs: 2_000,
      run: () => checkNode(),
      advice: 'Install sluice anew.',
    },
    {
      name: 'postgres',
      deadlineMs: 30_000,
      run: () => checkDatabase(config),
      advice: 'Is the server running, and is DATABASE_URL right?',
    },
    {
      name: 'redis',
      deadlineMs: 15_000,
      run: () => checkRedis(config),
      advice: 'Is it running, and is REDIS_URL right?',
    },
    {
      name: 'storage',
      deadlineMs: 20_000,
      run: () => checkStorage(files),
      advice:
        config.storage.kind === 's3'
          ? 'See docs/storage.md for what the key must be allowed.'
          : `May this user write into ${config.storage.directory}, and is its disk mounted?`,
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
    {
      name: 'public url',
      deadlineMs: 2_000,
      run: () => checkPublicUrl(config),
      advice: 'Set PUBLIC_URL as in https://sluice.example.com.',
    },
  ];
}

async function checkInbox({ inboxDir }: Config): Promise<Finding[]> {
  if (inboxDir === null) return [ok('inbox', 'not set: no folder is watched')];
  return [await judgeFolder('inbox', inboxDir, 'INBOX_DIR')];
}

async function checkDatabase(config: Config): Promise<Finding[]> {
  const url = await findDatabaseUrl(config);
  return url === undefined ? checkEmbedded(config.dataDir) : checkPostgres(url, config);
}
