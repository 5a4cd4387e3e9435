import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ExportJob as Detail } from '../../../src/export/api.ts';
import { fileLinks, linksExpireAt } from '../../../src/export/file-links.ts';
import { requireExport } from '../../../src/export/inspect-exports.ts';
import { pruneExports } from '../../../src/jobs/prune.ts';
import { warnOfStorage } from '../../../src/processes/preflight.ts';
import { collectLog } from '../../support/servers/collected-log.ts';
import { openServer } from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const settings = { STORAGE_PRESIGN: 'true' };
const { t, server } = await openServer({ storage: 's3', worker: true, settings });

const exportsPath = '/api/v1/analytics/exports';

test('an upload on S3 is loaded, and the links of its export are answered by S3', async () => {
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
  const seconds = Number(url.searchParams.get('X-Amz-Expires'));
  expect([seconds > 48 * 3600 - 60, seconds <= 48 * 3600]).toEqual([true, true]);
  const answer = await fetch(url);
  const bytes = Buffer.from(await answer.arrayBuffer());
  expect(bytes.toString().trimEnd().split('\n')).toHaveLength(1000);
  expect([bytes.length, createHash('sha256').update(bytes).digest('hex')]).toEqual([
    file?.bytes,
    file?.sha256,
  ]);
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
  expect(answer.headers.get('content-disposition')).toBe('attachment; filename="users.ndjson"');

  // An e-mail contains the links that `fileLinks` returns. These links must also lead to S3.
  const exportJob = await requireExport(t.system, t.environment.environmentId, jobId);
  const { files, manifest } = await fileLinks(t.system, exportJob, 'http://us', linksExpireAt());
  expect([...files, manifest].map((link) => new URL(link?.url ?? '').origin)).toEqual(
    exportJob.files.map(() => t.s3?.endpoint),
  );

  await waitFor('the export to have ended a moment ago', async () => {
    return (await pruneExports(t.system, { exportDays: 0, jobDays: 365 })).exports === 1;
  });
  expect((await t.s3?.objects())?.filter((key) => key.includes('exports/'))).toEqual([]);
  expect((await fetch(url)).status).toBe(404);
});

test('the service is ready only while the bucket answers, and a denied bucket is logged once', async () => {
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
