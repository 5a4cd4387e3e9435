import { request } from 'node:http';
import { expect, test } from 'vitest';
import type { SluiceProcess } from '../support/processes.ts';
import { createProfileFile } from '../support/profile-file.ts';
import { anyQueue, brakeAt, onSite, type Site, workingSession } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

const file = createProfileFile({ rows: 3_000, seed: 12 });
/** Bytes that are sent before the stop. */
const cut = 1_000;

test('told to stop, a server answers the upload in flight; told twice, a server and a worker end at once', async () => {
  await onSite({ queue: anyQueue, settings: { LOG_LEVEL: 'info' } }, async (site) => {
    await brakeAt(site, file.loneKey(1_500));
    const [api, other] = await Promise.all([site.serve(), site.serve()]);
    const upload = beginUpload(site, api.url);
    const stuck = beginUpload(site, other.url);
    await waitFor('the uploads to be begun', () => upload.begun() && stuck.begun());

    api.process.signal('SIGTERM');
    await api.process.says(/"stopping"/);
    await expect(api.fetch('/health/live')).rejects.toThrow();
    upload.end();
    expect(await upload.status).toBe(200);
    await waitFor('the server to end', () => api.process.ending !== null);
    expect(api.process.ending).toBe('exit code 0');

    await endsAtSecondSignal(other.process);
    await expect(stuck.status).rejects.toThrow();

    const worker = await site.work();
    await waitFor('the worker to come to the chunk', () =>
      workingSession(site.sql, 'chunk', "wait_event_type = 'Lock'"),
    );
    await endsAtSecondSignal(worker);
  });
});

async function endsAtSecondSignal(process: SluiceProcess): Promise<void> {
  process.signal('SIGTERM');
  await process.says(/"stopping"/);
  const secondAt = performance.now();
  await process.kill('SIGTERM');
  expect(process.ending).toBe('exit code 143');
  // The first alone would leave them a quarter of SHUTDOWN_MS, and more.
  expect(performance.now() - secondAt).toBeLessThan(2_000);
}

/** A POST of the file whose rest is still to come. */
function beginUpload({ key }: Site, url: string) {
  const options = {
    method: 'POST',
    headers: {
      authorization: `Token ${key}`,
      'content-type': 'text/csv',
      'content-length': file.bytes.length,
      expect: '100-continue',
    },
  };
  const upload = request(new URL('/v1/imports', url), options);
  let begun = false;
  upload.on('continue', () => {
    begun = true;
    upload.write(file.bytes.subarray(0, cut));
  });
  upload.flushHeaders();
  const status = new Promise<number | undefined>((resolve, reject) => {
    upload.on('error', reject).on('response', (response) => {
      response.resume();
      resolve(response.statusCode);
    });
  });
  status.catch(() => undefined);
  return { status, begun: () => begun, end: () => upload.end(file.bytes.subarray(cut)) };
}
