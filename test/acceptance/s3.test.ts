import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startS3, type TestS3 } from '../support/s3.ts';
import { waitFor } from '../support/wait-for.ts';
import { startService, temporaryFolder } from './cli.ts';
import { call, jobEnded, upload, usersCsv } from './service.ts';

let s3: TestS3;
beforeAll(async () => {
  s3 = await startS3();
});
afterAll(() => s3.stop());

interface Export {
  readonly job_id: string;
  readonly end_time: string | null;
  readonly presigned_urls: readonly { readonly filename: string; readonly url: string }[];
}

const exportsPath = '/api/v1/analytics/exports';

test('sluice start keeps files on S3: its workers read them, its exports are fetched there', async () => {
  const settings = { ...s3.variables, AWS_SECRET_ACCESS_KEY: 'not-to-be-seen', LOG_LEVEL: 'debug' };
  const service = await startService(await temporaryFolder(), { ...settings, WORKERS: '1' });
  const { url, key } = service;
  // 10 MB: two parts, and several chunks.
  const { job_id: loadId } = await upload(url, key, usersCsv(12_000, 'x'.repeat(800)));
  expect(await jobEnded(url, key, loadId)).toMatchObject({
    status: 'completed',
    counts: { inserted: 12_000 },
  });
  expect(s3.requests.some((request) => request.includes('partNumber=2'))).toBe(true);
  const body = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };
  const { job_id: jobId } = (await (await call(url, key, exportsPath, body)).json()) as Export;
  const ended = await waitFor('the export to end', async () => {
    const found = (await (await call(url, key, `${exportsPath}/jobs/${jobId}`)).json()) as Export;
    return found.end_time === null ? null : found;
  });
  const link = ended.presigned_urls.find(({ filename }) => filename.startsWith('users.'))?.url ?? '';
  expect(new URL(link).origin).toBe(s3.endpoint);
  const file = gunzipSync(Buffer.from(await (await fetch(link)).arrayBuffer())).toString();
  expect(file.trimEnd().split('\n')).toHaveLength(12_000);
  expect(service.stdout + service.stderr).not.toContain('not-to-be-seen');
});

test('sluice start says at once that the bucket is not there', async () => {
  const STORAGE_URL = s3.url.replace('//files', '//others');
  const settings = { ...s3.variables, STORAGE_URL, WORKERS: '0' };
  const service = await startService(await temporaryFolder(), settings);
  await waitFor('the warning', () =>
    service.stderr.includes(`there is no bucket others at ${s3.endpoint}; create it, or correct STORAGE_URL`),
  );
  expect((await call(service.url, null, '/health/ready')).status).toBe(503);
});
