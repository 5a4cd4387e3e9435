import type { Static } from 'typebox';
import { describe, expect, test } from 'vitest';
import type { Inspection } from '../../../src/capabilities/inspection/api.ts';
import type { uploadOfLoad } from '../../../src/load/upload/api.ts';
import { openServer } from '../../support/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const PERSONAL_KEY = 'a-secret-of-the-tests-for-hashes';
const { t, server } = await openServer({ settings: { PERSONAL_KEY }, worker: true });

const csv = { 'content-type': 'text/csv' };
const inspect = (key: string, body: string, query = '') =>
  server.json<Inspection>(`/v1/imports/inspect${query}`, { method: 'POST', body, headers: csv, key });
const apply = (key: string, file: string) => server.json('/v1/rules', { method: 'PUT', json: { file }, key });

describe('an inspection', () => {
  // proves: options-of
  test('takes the options of an earlier load', async () => {
    const { key } = t;
    const options = new URLSearchParams({ map: '{"Nr":"user_id","Stufe":"plan"}', delimiter: 'semicolon' });
    const sent = { method: 'POST', body: 'Nr;Stufe\na0;x\n', headers: csv, key };
    const { body: job } = await server.json<{ job_id: string }>(`/v1/imports?${options}`, sent);
    await t.ended(job.job_id);
    const { body } = await inspect(key, 'Nr;Stufe\n1;a,b,c\n', `?options_of=${job.job_id}`);
    expect(body).toMatchObject({
      problem: null,
      map: { Nr: 'user_id', Stufe: 'plan' },
      rows: [{ user_id: '1', metadata: { plan: 'a,b,c' } }],
    });
  });

  // proves: load-again
  test('reads the file of an earlier load as its job did', async () => {
    const { key } = await t.addEnvironment('inspected-again');
    const sent = { method: 'POST', body: 'Büro\nNr\n1\n2\n', headers: csv, key };
    const options = new URLSearchParams({ skip_rows: '1', map: 'Nr=user_id' });
    const { body: job } = await server.json<{ job_id: string }>(`/v1/imports?${options}`, sent);
    const path = `/v1/background_jobs/${job.job_id}`;
    await waitFor('the job to end', async () => {
      const { body } = await server.json<{ end_time: string | null }>(path, { key });
      return body.end_time !== null;
    });
    const { body: kept } = await server.json<Static<typeof uploadOfLoad.schema>>(`${path}/upload`, {
      method: 'POST',
      key,
    });
    const json = { upload_id: kept.upload_id, ...kept.options };
    const { body } = await server.json<Inspection>('/v1/imports/inspect', { json, key });
    expect(body).toMatchObject({ problem: null, records: 2, sha256: kept.sha256 });
  });

  // proves: rules-counted
  test('counts the records that break rules, and those that rules refuse', async () => {
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
  test('shows no personal values, of columns that are stored, dropped or cannot be read', async () => {
    const { key } = await t.addEnvironment('inspected-personal');
    const hashed = ['email', 'name', 'ip'].map((name) => `${name}: { personal: hash }`).join(', ');
    await apply(key, `users: { properties: { ${hashed}, ssn: { personal: drop } } }\n`);
    const secrets = ['ada@clear.example', 'Ada Clear', '203.0.113.77', '078-05-1120'];
    for (const header of ['user_id,email,name,ip,ssn', 'a,b,c,d,e']) {
      const { status, body } = await inspect(key, `${header}\nu1,${secrets.join(',')}\n,${secrets[0]}\n`);
      expect(status).toBe(200);
      for (const secret of secrets) expect(JSON.stringify(body)).not.toContain(secret);
    }
  });
});
