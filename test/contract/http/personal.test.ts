import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { ExportJob } from '../../../src/api/export.ts';
import { type ExportFormat, exportFormats, exportLayouts } from '../../../src/domain/export.ts';
import { scopes } from '../../../src/domain/scope.ts';
import { formatWriters } from '../../../src/export/write/formats.ts';
import { createApiKey } from '../../../src/postgres/stores/api-keys.ts';
import { openServer, refusalOf } from '../../support/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const PERSONAL_KEYS = `a:${Buffer.alloc(32, 1).toString('base64')}`;
const { t, server } = await openServer({ settings: { PERSONAL_KEYS }, worker: true });
const { environmentId } = t.environment;
const personal = await createApiKey(t.system.db, environmentId, {
  label: 'personal',
  scopes: [...scopes, 'personal'],
});
const values = await t.system.personal.valuesOf(environmentId);
const clear = '="Ada", née B,\nC';
const token = values.change('encrypt', clear, false);
await server.json('/v1/identify', { json: { user_id: 'u1', metadata: { name: token, plan: 'pro' } } });
await server.json('/v1/track', {
  json: { user_id: 'u1', event_name: 'seen', metadata: { by: { name: [token] }, of: 'x' } },
});

// proves: personal-scope
describe('a value that is encrypted', () => {
  test.each([
    '/v1/users/u1',
    '/v1/users/u1?provenance=true',
    '/v1/users',
    '/v1/users/u1/history',
    '/v1/users/u1/events',
  ])('is in clear at %s for a key with the scope personal alone', async (path) => {
    const [seen, hidden] = [await server.json(path, { key: personal.key }), await server.json(path)];
    expect(JSON.stringify(seen.body)).toContain(JSON.stringify(clear).slice(1, -1));
    expect(JSON.stringify(hidden.body)).toContain(String(token));
    expect(JSON.stringify(hidden.body)).not.toContain('née');
  });

  test('stays encrypted for a key that has every scope but has not asked for this one, which cannot export it in clear', async () => {
    const { key } = await createApiKey(t.system.db, environmentId, { label: 'usual' });
    expect(JSON.stringify((await server.json('/v1/users/u1', { key })).body)).toContain(String(token));
    for (const path of [exportsPath, `${exportsPath}/preview`])
      expect(await refusalOf(server, path, { key, json: { decrypt: true } })).toEqual(refused);
    const { job_id } = await exported({ decrypt: true }, personal.key);
    expect(await refusalOf(server, `${exportsPath}/jobs/${job_id}`, { key })).toEqual(refused);
  });

  test.each(exportFormats.flatMap((format) => exportLayouts.map((layout) => [format, layout] as const)))(
    'is in clear in files of %s in layout %s only if the export says so',
    async (format, layout) => {
      for (const decrypt of [true, false]) {
        const text = await textOf(await exported({ format, layout, decrypt }, personal.key), format);
        expect(text.includes('née')).toBe(decrypt);
        expect(text.includes(String(token))).toBe(!decrypt);
        if (decrypt && format === 'csv' && layout === 'datasets')
          expect(text).toContain(`"'=""Ada"", née B,\nC"`);
      }
    },
  );

  test('is the same for an export as a value that was never encrypted', async () => {
    const hashes = async (name: unknown) => {
      await server.json('/v1/identify', { json: { user_id: 'u1', metadata: { name } } });
      const job = await exported({ decrypt: true, event_type: ['users'], format: 'csv' }, personal.key);
      return textOf(job, 'csv').then((text) => text.replace(/[^,]*Z,[^,]*Z\n/g, ''));
    };
    expect(await hashes(clear)).toBe(await hashes(token));
  });
});

const exportsPath = '/api/v1/analytics/exports';
const refused = [403, ['insufficient_scope']];

async function exported(body: object, key: string): Promise<ExportJob> {
  const { body: created } = await server.json<{ job_id: string }>(exportsPath, { json: body, key });
  const path = `${exportsPath}/jobs/${created.job_id}`;
  return waitFor('the export', async () => {
    const { body: job } = await server.json<ExportJob>(path, { key });
    return job.status === 'completed' ? job : null;
  });
}

const folder = await mkdtemp(join(tmpdir(), 'personal-'));
afterAll(() => rm(folder, { recursive: true }));

async function textOf({ presigned_urls: files }: ExportJob, format: ExportFormat): Promise<string> {
  const pieces: Buffer[] = [];
  for (const { filename, url } of files) {
    const path = join(folder, filename);
    const file = await server.fetch(url, { key: null });
    await writeFile(path, Buffer.from(await file.arrayBuffer()));
    for await (const piece of formatWriters[format].readBack(path)) pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}
