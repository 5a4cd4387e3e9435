import { expect, test } from 'vitest';
import type { JobDetail as Job } from '../../../src/load/api.ts';
import { readProfiles } from '../../support/files/load-file.ts';
import { openServer } from '../../support/servers/http.ts';

const { t, server } = await openServer({ worker: true });

const load = (body: string): Promise<Job> =>
  server.load(body, { type: body.startsWith('{') ? 'application/x-ndjson' : 'text/csv' });

const lines = (...records: readonly object[]) =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');

// proves: removals-refused
test('a record that has only removed: true is refused, and with other properties it is a property', async () => {
  await load(
    lines(
      { user_id: 'u1', company_id: 'acme', name: 'Ada' },
      { user_id: 'u2', company_id: 'acme', name: 'Grace' },
      { user_id: 'u3', name: 'Joan' },
    ),
  );
  const job = await load(
    lines(
      { user_id: 'u1', removed: true },
      { company_id: 'acme', removed: true },
      { user_id: 'u2', removed: true, name: 'Grace' },
      { user_id: 'u3', removed: 'true' },
      { user_id: 'u3', event_type: 'track', event_name: 'open', removed: true },
    ),
  );
  expect(job).toMatchObject({
    counts: { read: 5, removed: 0, rejected: 2 },
    rejects: { by_code: { unsupported_kind: 2 } },
  });
  const csv = await load('user_id,removed,name\nu1,true,Ada\nu2,TRUE,\n');
  expect(csv).toMatchObject({
    counts: { updated: 1, rejected: 1 },
    rejects: { by_code: { unsupported_kind: 1 } },
  });
  expect(await readProfiles(t.system, t.environment.environmentId)).toEqual({
    users: {
      u1: { company: 'acme', metadata: { name: 'Ada', removed: 'true' } },
      u2: { company: 'acme', metadata: { name: 'Grace', removed: true } },
      u3: { company: null, metadata: { name: 'Joan', removed: 'true' } },
    },
    companies: { acme: { metadata: {} } },
  });
});

test('an alias in a file is refused, because a user has one id', async () => {
  const job = await load(
    lines(
      { event_type: 'alias', user_id: 'a1', previous_id: 'a0' },
      { event_type: 'identify_user', user_id: 'a2' },
    ),
  );
  expect(job).toMatchObject({
    counts: { inserted: 1, rejected: 1 },
    rejects: { by_code: { unsupported_kind: 1 } },
  });
});
