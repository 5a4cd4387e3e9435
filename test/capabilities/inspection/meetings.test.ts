import type { Static } from 'typebox';
import { expect, test } from 'vitest';
import type { Inspection } from '../../../src/capabilities/inspection/api.ts';
import type { uploadOfLoad } from '../../../src/load/api.ts';
import { openServer } from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const PERSONAL_KEY = 'a-secret-of-the-tests-for-hashes';
const { t, server } = await openServer({ settings: { PERSONAL_KEY }, worker: true });

const csv = { 'content-type': 'text/csv' };
const inspect = (key: string, body: string, query = '') =>
  server.json<Inspection>(`/v1/imports/inspect${query}`, { method: 'POST', body, headers: csv, key });
const apply = (key: string, file: string) => server.json('/v1/rules', { method: 'PUT', json: { file }, key });

// proves: options-of
test('an inspection can use the options of an earlier load', async () => {
  const { key } = t;
  const options = new URLSearchParams({ map: '{"Nr":"user_id","Stufe":"plan"}', delimiter: 'semicolon' });
  const request = { method: 'POST', body: 'Nr;Stufe\na0;x\n', headers: csv, key };
  const { body: job } = await server.json<{ job_id: string }>(`/v1/imports?${options}`, request);
  await t.ended(job.job_id);
  const { body } = await inspect(key, 'Nr;Stufe\n1;a,b,c\n', `?options_of=${job.job_id}`);
  expect(body).toMatchObject({
    problem: null,
    map: { Nr: 'user_id', Stufe: 'plan' },
    rows: [{ user_id: '1', metadata: { plan: 'a,b,c' } }],
  });
});

// proves: load-again
test('an inspection reads the file of an earlier load with the options of its job', async () => {
  const { key } = await t.addEnvironment('inspected-again');
  const request = { method: 'POST', body: 'Büro\nNr\n1\n2\n', headers: csv, key };
  const options = new URLSearchParams({ skip_rows: '1', map: 'Nr=user_id' });
  const { body: job } = await server.json<{ job_id: string }>(`/v1/imports?${options}`, request);
  const path = `/v1/background_jobs/${job.job_id}`;
  await waitFor('the job to end', async () => {
    const { body } = await server.json<{ end_time: string | null }>(path, { key });
    return body.end_time !== null;
  });
  const { body: upload } = await server.json<Static<typeof uploadOfLoad.schema>>(`${path}/upload`, {
    method: 'POST',
    key,
  });
  const json = { upload_id: upload.upload_id, ...upload.options };
  const { body } = await server.json<Inspection>('/v1/imports/inspect', { json, key });
  expect(body).toMatchObject({ problem: null, records: 2, sha256: upload.sha256 });
});

// proves: rules-counted
test('an inspection counts records that break rules, and records that rules refuse', async () => {
  const { key } = await t.addEnvironment('inspected-rules');
  const plan = 'plan: { enum: [free], otherwise: refuse }';
  await apply(key, `users: { properties: { ${plan}, seats: { type: integer } }, unknown: strip }\n`);
  const { body } = await inspect(
    key,
    'user_id,plan,seats,color\nu1,free,many,red\nu2,gold,3,\nu3,free,3,blue\n',
  );
  expect(body.findings).toEqual(
    expect.arrayContaining([
      { entity: 'users', property: 'color', rule: 'unknown', otherwise: 'strip', records: 2 },
      { entity: 'users', property: 'seats', rule: 'type', otherwise: 'report', records: 1 },
    ]),
  );
  expect(body.rejects).toMatchObject({ count: 1, by_code: { breaks_rule: 1 } });
});

// proves: no-personal-records
test('an inspection shows no personal values, even in columns that cannot be read', async () => {
  const { key } = await t.addEnvironment('inspected-personal');
  const hashRules = ['email', 'name', 'ip'].map((name) => `${name}: { personal: hash }`).join(', ');
  await apply(key, `users: { properties: { ${hashRules}, ssn: { personal: drop } } }\n`);
  const secrets = ['ada@clear.example', 'Ada Clear', '203.0.113.77', '078-05-1120'];
  for (const header of ['user_id,email,name,ip,ssn', 'a,b,c,d,e']) {
    const { status, body } = await inspect(key, `${header}\nu1,${secrets.join(',')}\n,${secrets[0]}\n`);
    expect(status).toBe(200);
    for (const secret of secrets) expect(JSON.stringify(body)).not.toContain(secret);
  }
});
