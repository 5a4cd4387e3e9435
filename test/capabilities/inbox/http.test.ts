import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Inbox } from '../../../src/capabilities/inbox/api.ts';
import { prune } from '../../../src/jobs/prune.ts';
import { openServer, refusalOf } from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';
import { drop } from './support/inbox.ts';

const folder = await mkdtemp(join(tmpdir(), 'sluice-inbox-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
const settings = { INBOX_DIR: folder, INBOX_STABLE_MS: '100', JOB_RETENTION_DAYS: '365' };
const { t, server } = await openServer({ worker: true, settings });
const otherTenant = await t.addEnvironment('other');
const post = { method: 'POST' };

const look = async ({ key }: { readonly key: string } = t) =>
  (await server.json<Inbox>('/v1/inbox', { key })).body;

test('the inbox lists results of files, and takes a failed one again on request', async () => {
  await waitFor('the folder', async () => (await readdir(folder)).includes('default'));
  await drop(join(folder, 'default', 'users.csv'), 'nothing,known\n1,2\n');
  const [failed] = await waitFor('the file to fail', async () => {
    const { recent } = await look();
    return recent.length === 1 && recent;
  });
  expect(failed).toMatchObject({
    name: 'users.csv',
    outcome: 'failed',
    reasons: [{ message: expect.any(String) }],
  });
  expect((await look(otherTenant)).recent).toEqual([]);
  const path = `/v1/inbox/${failed?.file_id}/take_again`;
  expect(await refusalOf(server, path, { ...post, key: otherTenant.key })).toEqual([404, ['not_found']]);
  await drop(join(folder, 'default', 'mapping.yaml'), 'map:\n  nothing: user_id\n');
  expect((await server.json(path, post)).body).toMatchObject({ name: 'users.csv' });
  await waitFor('the file to be loaded', async () => {
    const { recent } = await look();
    return recent.length === 2 && recent[0]?.outcome === 'done';
  });
  expect(await refusalOf(server, path, post)).toEqual([404, ['not_found']]);
  expect(await refusalOf(server, '/v1/inbox/x/take_again', post)).toEqual([404, ['not_found']]);
});

test('files that were concluded over a year ago are forgotten, however many', async () => {
  await t.system.pool.query(
    `insert into inbox_files (file_id, inbox_id, environment_id, folder, name, inode, size, modified_ns,
      options, state, outcome, placed_as, concluded_at)
    select overlay(gen_random_uuid()::text placing '7' from 15)::uuid, gen_random_uuid(), $1, '', 'f.csv', n, 1, 1,
      '{}', 'concluded', 'done', 'f.csv', now() - interval '366 days'
    from generate_series(1, 510) as n`,
    [t.environment.environmentId],
  );
  expect((await prune(t.system)).capabilityCounts).toMatchObject({ inbox_files: 510 });
  expect((await look()).recent).toHaveLength(2);
});
