import { join } from 'node:path';
import { embeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { sentenceOf } from './check.ts';
import { type Finding, failed, ok, warning } from './finding.ts';
import { judgeFolder } from './judge-folder.ts';

/** What can be told of the embedded PostgreSQL while it does not run. Starts nothing. */
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
