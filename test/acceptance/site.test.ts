import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import axe from 'axe-core';
import { chromium } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { pageFiles, placeOf } from '../../site/pages.ts';
import { chromiumPath } from '../support/browsers/browser.ts';

const site = resolve(import.meta.dirname, '../../site');
const vitepress = join(site, 'node_modules/.bin/vitepress');
const isInstalled = existsSync(vitepress);
if (!isInstalled) {
  process.stderr.write('The site of the docs is not tested: it is not installed (npm ci --prefix site).\n');
}

// proves: docs-true
test.skipIf(!isInstalled || chromiumPath === null)(
  'the site has every page, finds words without another server, and requests nothing from another origin',
  async () => {
    await promisify(execFile)(vitepress, ['build', site]);
    const dist = join(site, '.vitepress/dist');
    const missing = pageFiles.filter((file) => !existsSync(join(dist, placeOf(file).replace(/md$/, 'html'))));
    expect(missing).toEqual([]);
    const origin = await serveFolder(dist);
    const browser = await chromium.launch({ executablePath: chromiumPath ?? '', args: ['--no-sandbox'] });
    onTestFinished(() => browser.close());
    const page = await browser.newPage({ reducedMotion: 'reduce' });
    const elsewhere: string[] = [];
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(origin) && !url.startsWith('data:')) elsewhere.push(url);
    });
    const failed: string[] = [];
    page.on('response', (response) => void (response.status() >= 400 && failed.push(response.url())));
    page.on('pageerror', (error) => void failed.push(error.message));
    await page.goto(`${origin}/`);
    await page.getByRole('button', { name: 'Search' }).first().click();
    await page.getByRole('searchbox').fill('max_removed_values');
    await page.getByRole('option').filter({ hasText: 'Guards' }).or(page.getByRole('option')).first().click();
    await page.waitForURL((url) => url.pathname !== '/');
    expect(await page.locator('main').textContent()).toContain('max_removed_values');
    for (const path of ['/', '/start.html', '/api.html', '/console/']) {
      await page.goto(origin + path, { waitUntil: 'networkidle' });
      expect(await page.locator('h1').first().textContent()).not.toBe('404');
    }
    await page.goto(`${origin}/start.html`);
    await page.evaluate(axe.source);
    const faults: string[] = await page.evaluate(
      'axe.run(document.querySelector("main"), { resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))',
    );
    expect(faults).toEqual([]);
    expect(failed).toEqual([]);
    expect(elsewhere).toEqual([]);
  },
);

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.png': 'image/png',
  '.json': 'application/json',
};

async function serveFolder(folder: string): Promise<string> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const path = join(folder, pathname.endsWith('/') ? `${pathname}index.html` : pathname);
    readFile(path).then(
      (bytes) => response.setHeader('content-type', types[extname(path)] ?? 'text/plain').end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
