import { expect, test } from 'vitest';
import { openServer } from '../../support/servers/http.ts';

const { t, server } = await openServer({ worker: true, settings: { CHUNK_BYTES: '64k' } });
const { key } = await t.addEnvironment('existing');

const records = (from: number, to: number, plan: string) =>
  `user_id,plan,note\n${Array.from({ length: to - from }, (_, n) => `u${from + n},${plan},${'x'.repeat(40)}\n`).join('')}`;

const load = (query: string, body: string) => server.load(body, { query: `?${query}`, key });

// proves: keeps-existing
test('a file of several chunks with existing=keep adds only new users and missing properties', async () => {
  await load('', records(0, 3_000, 'new'));
  const job = await load(
    'existing=keep',
    records(1_500, 4_500, 'old').replaceAll(',note', ',note,since').replace(/x$/gm, 'x,2020'),
  );
  expect(job).toMatchObject({
    status: 'completed',
    counts: { read: 3_000, inserted: 1_500, updated: 1_500 },
  });
  const chunks = await t.system.pool.query(
    'select from sluice.load_chunks join sluice.loads using (load_id) where job_id = $1',
    [job.job_id],
  );
  expect(chunks.rowCount).toBeGreaterThan(2);
  const { rows } = await t.system.pool.query(
    `select metadata ->> 'plan' as plan, count(*)::int as users, count(metadata ->> 'since')::int as since
    from sluice.users where environment_id = (select environment_id from sluice.environments where name = 'existing')
    group by 1 order by 1`,
  );
  expect(rows).toEqual([
    { plan: 'new', users: 3_000, since: 1_500 },
    { plan: 'old', users: 1_500, since: 1_500 },
  ]);
});

test('an import with another existing than replace or keep is refused', async () => {
  await expect(load('existing=yes', 'user_id\nu1\n')).rejects.toThrow('existing must be replace or keep');
});
