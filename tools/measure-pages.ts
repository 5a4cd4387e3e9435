/**
 * Figures of pages in Chromium: what axe-core finds, the bytes of the first screen, and Lighthouse's scores. To be run by
 * hand, on a service that runs and has data in it:
 *
 *     npx tsx tools/measure-pages.ts <address> <key> /console/jobs /console/live …
 *
 * A key is signed in with; `admin:<password>` is sent as a Basic login instead. Lighthouse needs Node 22.19 and is fetched
 * by npx, or run by the command in LIGHTHOUSE (`none`: not at all). It is no dependency: it has 200 packages and needs
 * half a minute to install, which no CI run should pay.
 */
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import axe from 'axe-core';
import { type BrowserContext, chromium } from 'playwright-core';
import { chromiumPath } from '../test/support/browser.ts';
import { waitFor } from '../test/support/wait-for.ts';

const lighthouse = process.env['LIGHTHOUSE'] ?? 'npx --yes lighthouse@13.5.0';
const categories = ['performance', 'accessibility', 'best-practices'] as const;
const looks = [1440, 390].flatMap((width) => (['light', 'dark'] as const).map((theme) => ({ width, theme })));

interface Report {
  readonly categories: Readonly<Record<string, { readonly score: number | null }>>;
  readonly audits: Readonly<
    Record<
      string,
      {
        readonly score: number | null;
        readonly title: string;
        readonly displayValue?: string;
        readonly scoreDisplayMode: string;
      }
    >
  >;
}

interface Login {
  readonly address: string;
  readonly key: string;
}

/** Its debugging port, and how it is ended. */
async function startChromium(): Promise<{ readonly port: string; close(): Promise<void> }> {
  if (chromiumPath === null) throw new Error('there is no Chromium');
  const folder = await mkdtemp(join(tmpdir(), 'sluice-pages-'));
  const flags = [
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
  ];
  const child = spawn(chromiumPath, [...flags, '--remote-debugging-port=0', `--user-data-dir=${folder}`], {
    stdio: 'ignore',
  });
  const port = await waitFor('Chromium to listen', async () => {
    const text = await readFile(join(folder, 'DevToolsActivePort'), 'utf8').catch(() => '');
    return text.split('\n')[0] || null;
  });
  return {
    port,
    async close() {
      child.kill();
      await new Promise((resolve) => child.once('exit', resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const basicLogin = ({ key }: Login): Record<string, string> =>
  key.startsWith('admin:') ? { authorization: `Basic ${Buffer.from(key).toString('base64')}` } : {};

async function signIn(context: BrowserContext, { address, key }: Login): Promise<void> {
  if (key.startsWith('admin:')) return;
  const answer = await context.request.post(new URL('/v1/console/sign_in', address).href, {
    data: { key },
    headers: { 'sec-fetch-site': 'same-origin' },
  });
  if (!answer.ok()) throw new Error(`signing in was answered ${answer.status()}`);
}

/** Rules that are broken with the number of places, over both themes and widths. */
async function findViolations(context: BrowserContext, login: Login, url: string): Promise<string[]> {
  const found = new Map<string, number>();
  for (const { width, theme } of looks) {
    const page = await context.newPage();
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await page.setExtraHTTPHeaders(basicLogin(login));
    await page.goto(url);
    await page.waitForTimeout(2_000);
    await page.evaluate(axe.source);
    const violations = (await page.evaluate(
      'axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.length]))',
    )) as [string, number][];
    for (const [id, places] of violations) found.set(id, Math.max(found.get(id) ?? 0, places));
    await page.close();
  }
  return [...found].map(([id, places]) => `${id} × ${places}`);
}

/** What the first visit transfers and unpacks, by kind; and the origins that are asked. */
async function weigh(context: BrowserContext, login: Login, url: string): Promise<string> {
  const page = await context.newPage();
  await page.setExtraHTTPHeaders(basicLogin(login));
  const network = await context.newCDPSession(page);
  await network.send('Network.enable');
  await network.send('Network.setCacheDisabled', { cacheDisabled: true });
  const sums = { requests: 0, transferred: 0, unpacked: 0 };
  const origins = new Set<string>();
  network.on('Network.loadingFinished', ({ encodedDataLength }) => {
    sums.requests += 1;
    sums.transferred += encodedDataLength;
  });
  network.on('Network.dataReceived', ({ dataLength }) => {
    sums.unpacked += dataLength;
  });
  page.on('request', (request) => origins.add(new URL(request.url()).origin));
  await page.goto(url);
  await page.waitForTimeout(3_000);
  await page.close();
  const others = [...origins].filter((origin) => origin !== new URL(url).origin && origin.startsWith('http'));
  return `${sums.requests} requests, ${sums.transferred} bytes transferred, ${sums.unpacked} unpacked, other origins: ${others.join(' ') || 'none'}`;
}

async function audit(
  port: string,
  login: Login,
  url: string,
  preset: 'desktop' | 'mobile',
): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-lighthouse-'));
  const path = join(folder, 'report.json');
  const flags = [
    `--port=${port}`,
    '--disable-storage-reset',
    '--quiet',
    '--output=json',
    `--output-path=${path}`,
    `--only-categories=${categories.join(',')}`,
    `--extra-headers=${JSON.stringify(basicLogin(login))}`,
    ...(preset === 'desktop' ? ['--preset=desktop'] : []),
  ];
  const [command = '', ...words] = lighthouse.split(' ');
  await promisify(execFile)(command, [...words, url, ...flags]);
  const report = JSON.parse(await readFile(path, 'utf8')) as Report;
  await rm(folder, { recursive: true, force: true });
  const scores = categories.map(
    (name) => `${name} ${Math.round((report.categories[name]?.score ?? 0) * 100)}`,
  );
  const poor = Object.values(report.audits).filter(
    ({ score, scoreDisplayMode }) => score !== null && score < 0.9 && scoreDisplayMode !== 'informative',
  );
  return [
    `Lighthouse ${preset}: ${scores.join(', ')}`,
    ...poor.map(({ title, score, displayValue = '' }) => `    ${score} ${title} ${displayValue}`),
  ];
}

const [address = '', key = '', ...paths] = process.argv.slice(2);
const login = { address, key };
const browser = await startChromium();
const remote = await chromium.connectOverCDP(`http://127.0.0.1:${browser.port}`);
try {
  const [context] = remote.contexts();
  if (context === undefined) throw new Error('the browser has no context');
  await signIn(context, login);
  for (const path of paths) {
    const url = new URL(path, address).href;
    const violations = await findViolations(context, login, url);
    const lines = [
      `${path}: axe-core ${violations.length} rules broken ${violations.join(', ')}`,
      `  ${await weigh(context, login, url)}`,
      ...(lighthouse === 'none' ? [] : await audit(browser.port, login, url, 'desktop')).map(
        (line) => `  ${line}`,
      ),
      ...(lighthouse === 'none' ? [] : await audit(browser.port, login, url, 'mobile')).map(
        (line) => `  ${line}`,
      ),
    ];
    process.stdout.write(`${lines.join('\n')}\n`);
  }
} finally {
  await remote.close();
  await browser.close();
}
