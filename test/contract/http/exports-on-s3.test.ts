import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ExportJob as Detail } from '../../../src/api/export.ts';
import { pruneExports } from '../../../src/background-jobs/prune.ts';
import { warnOfStorage } from '../../../src/cli/service/preflight.ts';
import { scopes } from '../../../src/domain/scope.ts';
import { fileLinks, linksExpireAt } from '../../../src/export/file-links.ts';
import { requireExport } from '../../../src/export/inspect-exports.ts';
import { createApiKey } from '../../../src/postgres/stores/api-keys.ts';
import { clearBelow, clearUser, personalKeys, personalRules } from '../../support/clear-values.ts';
import { collectLog } from '../../support/collected-log.ts';
import { openServer } from '../../support/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const settings = { STORAGE_PRESIGN: 'true', LINK_TTL_HOURS: '1000', PERSONAL_KEYS: personalKeys };
const { t, server } = await openServer({ storage: 's3', worker: true, settings });

const exportsPath = '/api/v1/analytics/exports';

test('with files on S3 an upload is loaded, and the links of its export are answered by S3', async () => {
  const rows = Array.from({ length: 1000 }, (_, i) => `u${i},${i}\n`).join('');
  const headers = { 'content-type': 'text/csv' };
  const upload = await server.json<{ job_id: string }>('/v1/imports', {
    method: 'POST',
    headers,
    body: `user_id,n\n${rows}`,
  });
  expect((await t.ended(upload.body.job_id)).status).toBe('completed');
  const created = await server.json<{ job_id: string }>(exportsPath, { json: { compression: 'none' } });
  expect(created.status).toBe(201);
  const jobId = created.body.job_id;
  const detail = await waitFor('the export to end', async () => {
    const { body } = await server.json<Detail>(`${exportsPath}/jobs/${jobId}`);
    return body.end_time === null ? null : body;
  });
  const file = detail.presigned_urls.find(({ filename }) => filename === 'users.ndjson');
  const url = new URL(file?.url ?? '');
  expect(url.origin).toBe(t.s3?.endpoint);
  expect(url.pathname).toContain(`/files/some/prefix/exports/${jobId}/1/`);
  // S3 signs for a week at most.
  expect(Number(url.searchParams.get('X-Amz-Expires'))).toBeGreaterThan(7 * 24 * 3600 - 60);
  const answer = await fetch(url);
  const bytes = Buffer.from(await answer.arrayBuffer());
  expect(bytes.toString().trimEnd().split('\n')).toHaveLength(1000);
  expect([bytes.length, createHash('sha256').update(bytes).digest('hex')]).toEqual([
    file?.bytes,
    file?.sha256,
  ]);
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
  expect(answer.headers.get('content-disposition')).toBe('attachment; filename="users.ndjson"');

  // A message about it says until when the links are good, and means S3's bound.
  const found = await requireExport(t.system, t.environment.environmentId, jobId);
  const expireAt = linksExpireAt(t.system.files, 1000, 0);
  expect(expireAt.getTime()).toBe(7 * 24 * 3_600_000);
  const { files, manifest } = await fileLinks(t.system, found, 'http://us', expireAt);
  expect([...files, manifest].map((link) => new URL(link?.url ?? '').origin)).toEqual(
    found.files.map(() => t.s3?.endpoint),
  );

  await waitFor('the export to have ended a moment ago', async () => {
    return (await pruneExports(t.system, { exportDays: 0, jobDays: 365 })).exports === 1;
  });
  expect((await t.s3?.objects())?.filter((key) => key.includes('exports/'))).toEqual([]);
  expect((await fetch(url)).status).toBe(404);
});

test('the service is ready while the bucket answers, and not when it does not', async () => {
  expect((await server.fetch('/health/ready', { key: null })).status).toBe(200);
  t.s3?.breakNext(/^GET \/files/, 'denied');
  const { status, body } = await server.json<{ parts: { storage: string } }>('/health/ready', { key: null });
  expect([status, JSON.stringify(body)]).toEqual([503, expect.stringContaining('away')]);
  t.s3?.breakNext(/^GET \/files/, 'denied');
  const collected = collectLog();
  await warnOfStorage(t.config, t.system.files, collected.log);
  await warnOfStorage(t.config, t.system.files, collected.log);
  expect(collected.lines.map(({ msg }) => msg)).toEqual([
    'S3 storage, checking it: access to bucket files is denied; allow what docs/storage.md lists',
  ]);
});

// proves: sealed-files
test('an export with personal values in clear is stored sealed, and its links are answered by us', async () => {
  const wish = { label: 'clear', scopes: [...scopes, 'personal'] } as const;
  const { key } = await createApiKey(t.system.db, t.environment.environmentId, wish);
  await server.json('/v1/rules', { method: 'PUT', json: { file: personalRules } });
  const address = clearUser('sealed').address;
  await server.json('/v1/identify', { json: { user_id: 'sealed', metadata: { address } } });
  const asked = { decrypt: true, event_type: ['users'], format: 'ndjson', compression: 'none' };
  const { body } = await server.json<{ job_id: string }>(exportsPath, { json: asked, key });
  const { presigned_urls: links } = await waitFor('the export to end', async () => {
    const detail = await server.json<Detail>(`${exportsPath}/jobs/${body.job_id}`, { key });
    return detail.body.end_time === null ? null : detail.body;
  });
  const url = links.find(({ filename }) => filename.startsWith('users'))?.url ?? '';
  expect(new URL(url).origin).not.toBe(t.s3?.endpoint);
  expect(await (await fetch(url)).text()).toContain(address);
  const stored = await clearBelow(t.s3?.folder ?? '');
  expect(stored).toEqual([]);
  expect(await t.storedFiles()).toContainEqual(expect.stringMatching(/exports\/.*\.sealed$/));
});
