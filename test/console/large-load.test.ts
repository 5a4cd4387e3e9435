import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { consoleStage, dropFile, limitUpload } from '../support/console.ts';
import { mendedUsersSql, refusedFile, refusedOf } from '../support/refused-file.ts';
import { startStallingProxy } from '../support/stalling-proxy.ts';
import { waitFor } from '../support/wait-for.ts';

const isLarge = (process.env['SLUICE_LARGE'] ?? '') !== '';
const rows = isLarge ? 1_000_000 : 20_000;
const refused = refusedOf(rows);
const longMs = isLarge ? 600_000 : 60_000;
/** Writes a number like the browser of the stage. */
const count = (number: number) => number.toLocaleString('en-GB');

const stage = consoleStage();
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-large-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function isLeft(page: Page, records: number): Promise<void> {
  const text = records === 0 ? 'All refused records are mended.' : `${count(records)} left`;
  await page.getByText(text).waitFor({ timeout: longMs });
}

// proves: replacement, console-load
test('a CSV with refused records of five causes on many pages is dropped, mapped, planned and loaded, and they are mended to 0 without leaving the page', async () => {
  const path = join(folder, 'customers.csv');
  await pipeline(Readable.from(refusedFile(rows)), createWriteStream(path));
  const page = await stage.open('/load');
  await dropFile(page, path);
  await page.getByText('Raw text').first().waitFor({ timeout: longMs });
  await page.getByLabel('Encoding').selectOption('utf-8');
  await page.waitForURL(/encoding=utf-8/);
  await page.getByRole('link', { name: 'Continue to columns' }).click();
  await page.getByRole('button', { name: 'Plan the load' }).click();
  await page.getByText(`${count(rows)} records planned`).waitFor({ timeout: longMs });
  await page.getByRole('button', { name: `Load: write ${count(rows - refused)} records` }).click();
  await page.getByText(`${count(rows)} records read`).waitFor({ timeout: longMs });
  await isLeft(page, refused);

  // What the records show, the server proposes.
  let left = refused;
  for (const deed of [
    'read with a decimal comma in it',
    'read in windows-1252',
    'read with the quotes inside cells',
  ]) {
    const each = rows / 100;
    await page.getByRole('button', { name: new RegExp(`^Apply to ${count(each)} .*${deed}`) }).click();
    await page.getByRole('button', { name: `Mend ${count(each)} records` }).click();
    left -= each;
    await isLeft(page, left);
  }
  // What only a person knows: one record in the grid, the others by what is to stand in a column.
  const [noId, noAmount] = [rows / 200, rows / 200];
  await page.getByRole('link', { name: /Show these records\s*: missing_id/ }).click();
  await page.getByText(`50 of ${count(noId)} refused records`).waitFor();
  await page.getByLabel('user_id, row 59').fill('u59');
  await page.getByRole('button', { name: 'Send 1 record back' }).click();
  await isLeft(page, left - 1);
  await page.getByLabel('Replace in').selectOption({ label: 'user_id' });
  await page.getByLabel('Replace with').fill('u{row}');
  await page.getByRole('button', { name: `Replace in all ${count(noId - 1)} …` }).click();
  await page.getByRole('button', { name: `Replace in ${count(noId - 1)} records` }).click();
  await isLeft(page, noAmount);
  await page.getByLabel('Replace in').selectOption({ label: 'amount' });
  await page.getByLabel('Replace with').fill('0');
  await page.getByRole('button', { name: `Replace in all ${count(noAmount)} …` }).click();
  await page.getByRole('button', { name: `Replace in ${count(noAmount)} records` }).click();
  await isLeft(page, 0);
  await page.getByText('Nothing is left to mend').waitFor();

  expect(new URL(page.url()).pathname).toBe('/console/load');
  const { rows: found } = await sql.raw(mendedUsersSql.replace('$1', "'0'")).execute(stage.t.system.db);
  expect(found).toEqual([{ users: rows, wrong: 0 }]);
}, 1_200_000);

const line = 'u1,0123456789abcdef0123456789abcdef0123456789ab\n';
const fileBytes = (isLarge ? 1_024 : 64) * 2 ** 20;
/** More than the heap of a page that does nothing moves by; a page that held the file would need all of `fileBytes`. */
const heapGrowth = 16 * 2 ** 20;

// proves: console-memory
test('of a file that is dropped the browser holds nothing: its heap stays flat while all of it is sent, and after the connection is cut in the middle', async () => {
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
  try {
    const page = await stage.open('/load', { origin: `http://127.0.0.1:${proxy.port}` });
    const metrics = await page.context().newCDPSession(page);
    await metrics.send('Performance.enable');
    const heap = async () => {
      const { metrics: all } = await metrics.send('Performance.getMetrics');
      return all.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? 0;
    };
    await metrics.send('HeapProfiler.collectGarbage');
    const before = await heap();
    const progress = page.locator('progress[aria-label="Sent of huge.csv"]');
    await (await limitUpload(page))(isLarge ? 100_000_000 : 40_000_000);
    await dropFile(page, path);
    let most = 0;
    let cutAt = 0;
    const read = page.getByText('Raw text').first();
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
        return read.isVisible();
      },
      { timeoutMs: longMs },
    );
    expect(cutAt).toBeGreaterThan(0);
    expect(cutAt).toBeLessThan(size);
    const { body } = await stage.server.json<{ filename: string; file_size: number }[]>('/v1/uploads');
    expect(body.find(({ filename }) => filename === 'huge.csv')?.file_size).toBe(size);
    expect(most).toBeGreaterThan(0);
    expect(most - before).toBeLessThan(heapGrowth);
  } finally {
    await proxy.close();
  }
}, 900_000);
