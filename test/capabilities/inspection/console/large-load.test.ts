import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { consoleStage, dropFile, limitUpload } from '../../../support/browsers/console.ts';
import { cleanUpAfter } from '../../../support/cleanups.ts';
import { startStallingProxy } from '../../../support/servers/stalling-proxy.ts';
import { waitFor } from '../../../support/wait-for.ts';

const isLarge = (process.env['SLUICE_LARGE'] ?? '') !== '';
const longMs = isLarge ? 600_000 : 60_000;

const stage = consoleStage();
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-large-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const line = 'u1,0123456789abcdef0123456789abcdef0123456789ab\n';
const fileBytes = (isLarge ? 1_024 : 32) * 2 ** 20;
/**
 * Maximum growth of the heap in bytes. The heap of an idle page grows by less. Reading the whole
 * file would need `fileBytes` more.
 */
const heapGrowth = 16 * 2 ** 20;

// proves: console-memory
test('a dropped file is never kept in memory of the browser, even when sent again', async () => {
  const path = join(folder, 'huge.csv');
  const block = Buffer.from(line.repeat(2 ** 20 / line.length));
  const blocks = fileBytes / block.length;
  await pipeline(
    Readable.from(
      (function* () {
        yield Buffer.from('user_id,text\n');
        for (let n = 0; n < blocks; n++) yield block;
      })(),
    ),
    createWriteStream(path),
  );
  const { size } = await stat(path);
  const proxy = await startStallingProxy(new URL(stage.server.address));
  cleanUpAfter('test', () => proxy.close());
  const page = await stage.open('/load', { origin: `http://127.0.0.1:${proxy.port}` });
  const metrics = await page.context().newCDPSession(page);
  await metrics.send('Performance.enable');
  const heap = async () => {
    const { metrics: allMetrics } = await metrics.send('Performance.getMetrics');
    return allMetrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? 0;
  };
  await metrics.send('HeapProfiler.collectGarbage');
  const heapBefore = await heap();
  const progress = page.locator('progress[aria-label="Sent of huge.csv"]');
  await (await limitUpload(page))(isLarge ? 100_000_000 : 20_000_000);
  await dropFile(page, path);
  let most = 0;
  let cutAt = 0;
  const detectedLine = page.getByText('Detected:').first();
  await waitFor(
    'all of it to be sent',
    async () => {
      most = Math.max(most, await heap());
      const isSending = (await progress.count()) > 0;
      const at = isSending ? Number(await progress.getAttribute('value').catch(() => 0)) : 0;
      if (cutAt === 0 && at > size / 3) {
        cutAt = at;
        proxy.cut();
      }
      return detectedLine.isVisible();
    },
    { timeoutMs: longMs },
  );
  expect(cutAt).toBeGreaterThan(0);
  expect(cutAt).toBeLessThan(size);
  const upload = await stage.t.system.db
    .selectFrom('uploads')
    .select('file_size')
    .where('filename', '=', 'huge.csv')
    .executeTakeFirst();
  expect(upload?.file_size).toBe(size);
  expect(most).toBeGreaterThan(0);
  expect(most - heapBefore).toBeLessThan(heapGrowth);
}, 900_000);
