import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import type { Entity } from '../../src/domain/entity.ts';
import type { ProfileChange } from '../../src/profiles/api.ts';
import { type HistoryPage, readHistory } from '../../src/profiles/store.ts';
import { newEnvironment, runManually, startManually } from '../support/files/load-file.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { writeCompanies, writeUsers } from '../support/servers/write-users.ts';

const t = await systemOfFile();
const operator = new pg.Client({ connectionString: t.databaseUrl });
await operator.connect();
afterAll(() => operator.end());

async function load(environmentId: number, text: string, options = {}): Promise<string> {
  const started = await startManually(t.system, environmentId, text, options);
  expect((await runManually(started)).status).toBe('completed');
  return started.jobId;
}

function identify(environmentId: number, key: string, properties: object, companyId: string | null = null) {
  const removes = Object.values(properties).includes(null) || companyId === '';
  const companies =
    companyId === null || companyId === ''
      ? []
      : [{ environmentId, key: companyId, properties: '{}', removes: false }];
  return writeUsers(
    t.system.pool,
    [{ environmentId, key, properties: JSON.stringify(properties), removes, companyId }],
    companies,
  );
}

const page = (
  environmentId: number,
  id: string,
  entity: Entity,
  limit: number,
  after: number | null,
): Promise<HistoryPage> => readHistory(t.system.reader.db, { environmentId, entity, id }, { limit, after });

/** Returns all changes of a profile, newest first, read in pages of `limit`. */
async function history(environmentId: number, id: string, entity: Entity = 'users', limit = 100) {
  const changes: ProfileChange[] = [];
  let after: number | null = null;
  do {
    const part: HistoryPage = await page(environmentId, id, entity, limit, after);
    expect(part.changes.length).toBeLessThanOrEqual(limit);
    changes.push(...part.changes.map(({ json }) => JSON.parse(json) as ProfileChange));
    after = part.next;
  } while (after !== null);
  return changes;
}

/** Returns the parts of each change that tests compare. Omits times. */
const plain = (changes: readonly ProfileChange[]) =>
  changes.map(({ action, by, job, before }) => ({
    what: `${action} by ${by}${job === null ? '' : ` ${job.job_id}`}`,
    ...before?.metadata,
    ...(before?.company_id != null && { company: before.company_id }),
  }));

describe('the history of a profile', () => {
  // proves: history-complete
  test('the history of a profile has its values before each change by a load, a request or an operator, newest first', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(environmentId, 'user_id,plan,size\na,free,1\nb,free,1\n');
    await identify(environmentId, 'a', { plan: 'pro', size: null }, 'acme');
    const second = await load(environmentId, 'user_id,plan,seats,company_id\na,pro,7,globex\n');
    await operator.query(
      `update sluice.users set metadata = metadata || '{"plan": "gold"}' where environment_id = $1 and user_id = 'a'`,
      [environmentId],
    );
    await load(environmentId, 'user_id,plan\na,gold\n');
    const changes = await history(environmentId, 'a');
    expect(plain(changes)).toEqual([
      { what: 'changed by operator', plan: 'pro', seats: '7', company: 'globex' },
      { what: `changed by load ${second}`, plan: 'pro', company: 'acme' },
      { what: 'changed by request', plan: 'free', size: '1' },
    ]);
    expect(changes[1]?.job).toEqual({ job_id: second, type: 'import', filename: 'users.csv' });
    const times = changes.map(({ at }) => at);
    expect(times).toEqual(times.toSorted().reverse());
    expect(await history(environmentId, 'b')).toEqual([]);
  });

  test('the history of a company, and of a user of another environment, has only its own changes', async () => {
    const one = await newEnvironment(t.system);
    const other = await newEnvironment(t.system);
    await identify(one, 'u', {}, 'acme');
    await identify(one, 'u', { a: 1 });
    for (const size of [1, 2]) {
      await writeCompanies(t.system.pool, [
        { environmentId: one, key: 'acme', properties: `{"size":${size}}`, removes: false },
      ]);
    }
    expect(plain(await history(one, 'acme', 'companies'))).toEqual([
      { what: 'changed by request', size: 1 },
      { what: 'changed by request' },
    ]);
    expect(await history(other, 'u')).toEqual([]);
  });

  test('the history of a removed profile has its last values', async () => {
    const environmentId = await newEnvironment(t.system);
    await identify(environmentId, 'a', { plan: 'free' });
    await operator.query(`delete from sluice.users where environment_id = $1`, [environmentId]);
    await load(environmentId, 'user_id,plan\na,gold\n');
    await identify(environmentId, 'a', { plan: 'old' });
    expect(plain(await history(environmentId, 'a'))).toEqual([
      { what: 'changed by request', plan: 'gold' },
      { what: 'removed by operator', plan: 'free' },
    ]);
  });

  // proves: history-complete
  test('the history of a person whose data was deleted has the deletion, and nothing else', async () => {
    const environmentId = await newEnvironment(t.system);
    await identify(environmentId, 'a', { secret: 'x' });
    await identify(environmentId, 'a', { secret: 'y' });
    await (await acceptDeletion(t.system, environmentId, 'users', ['a'])).run();
    const [deletion, ...others] = await history(environmentId, 'a');
    expect(deletion).toMatchObject({ action: 'removed', by: 'deletion', before: null });
    expect(others).toEqual([]);
  });
});
