import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, inject } from 'vitest';
import { packageRoot } from '../../../src/base/package-root.ts';
import { cleanUpAfter } from '../cleanups.ts';
import { form, serve, type TestServer } from '../servers/http.ts';
import { openTestSystem, type TestSystem, type TestSystemOptions } from '../servers/system.ts';
import { patienceMs, waitFor } from '../wait-for.ts';

/** The service of a test file, and functions that open its pages in a real browser. */
interface ConsoleStage {
  readonly t: TestSystem;
  readonly server: TestServer;
  /**
   * Opens a page below /console, signed in with the key of `default`. Until the test ends, further
   * calls navigate the same page, unless their options have an origin or a clock.
   */
  open(path: string, options?: PageOptions): Promise<Page>;
  openSignedOut(path: string, options?: PageOptions): Promise<Page>;
  address(path: string): string;
  post<T = unknown>(path: string, body?: unknown): Promise<T>;
  /** Uploads a file. Returns the id of its job. */
  load(text: string, filename: string, fields?: Record<string, string>): Promise<string>;
}

interface PageOptions {
  readonly width?: 1440 | 390 | 360;
  readonly theme?: 'light' | 'dark';
  readonly key?: string;
  /** Origin to open in a new page, such as that of a proxy. Default: the origin of the server. */
  readonly origin?: string;
  /** Whether to open a new page with a fake clock, which `hurryTo` needs. */
  readonly clock?: boolean;
}

type Look = Required<Pick<PageOptions, 'width' | 'theme'>>;

const desktop = 1440;
export const phone = 390;
const themes = ['light', 'dark'] as const;
const heights: Readonly<Record<number, number>> = { 1440: 900, 390: 844, 360: 780 };

/**
 * Opens one service and one page for all tests of a file, because a new page costs three times the
 * processor time of a navigation. Call this once, outside of tests. A test fails if its page
 * violates the content security policy, requests another origin or throws.
 */
export function consoleStage(options: TestSystemOptions = { worker: true }): ConsoleStage {
  let system: TestSystem | undefined;
  let server: TestServer | undefined;
  let browser: Browser | undefined;
  let sharedPage: Page | undefined;
  const contexts: BrowserContext[] = [];
  const complaints: string[] = [];
  beforeAll(async () => {
    browser = await chromium.connect(inject('browserUrl'));
    system = await openTestSystem(options);
    server = await serve(system);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await system?.close();
  });
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close();
    if (sharedPage !== undefined) await reset(sharedPage);
    expect(complaints.splice(0)).toEqual([]);
  });
  const stage: ConsoleStage = {
    get t() {
      if (system === undefined) throw new Error('the system is not open yet');
      return system;
    },
    get server() {
      if (server === undefined) throw new Error('the server does not listen yet');
      return server;
    },
    address: (path) => new URL(`/console${path}`, stage.server.address).href,
    async post<T>(path: string, sent?: unknown) {
      const body = JSON.stringify(sent ?? {});
      const headers = { 'content-type': 'application/json' };
      return (await stage.server.json<T>(path, { method: 'POST', headers, body })).body;
    },
    async load(text, filename, before = {}) {
      const body = form(text, { filename, before });
      return (await stage.server.json<{ job_id: string }>('/v1/imports', { method: 'POST', body })).body
        .job_id;
    },
    async openSignedOut(path, options = {}) {
      const page = await pageFor(options);
      await leave(page, options.origin);
      await page.goto(new URL(`/console${path}`, options.origin ?? stage.server.address).href);
      return page;
    },
    async open(path, { key = stage.t.key, ...options } = {}) {
      const { origin = stage.server.address } = options;
      const page = await pageFor(options);
      const signedIn = await page.request.post(new URL('/v1/console/sign_in', origin).href, {
        data: { key },
        headers: { 'sec-fetch-site': 'same-origin' },
      });
      expect(signedIn.status()).toBe(200);
      await page.goto(new URL(`/console${path}`, origin).href);
      await page.locator('#main h1').first().waitFor();
      return page;
    },
  };
  async function pageFor({ width = desktop, theme = 'light', origin, clock = false }: PageOptions) {
    if (origin === undefined && !clock) {
      sharedPage ??= await newPage(stage.server.address);
      await setLook(sharedPage, { width, theme });
      return sharedPage;
    }
    const page = await newPage(origin ?? stage.server.address);
    contexts.push(page.context());
    if (clock) await page.clock.install();
    await setLook(page, { width, theme });
    return page;
  }
  /**
   * Signs out, and opens a response without scripts. Unlike `about:blank`, this response has the
   * same origin, so the browser needs no new process.
   */
  async function leave(page: Page, origin = stage.server.address) {
    await page.goto(new URL('/health/live', origin).href);
    await page.context().clearCookies();
  }
  /** Removes the routes and listeners that a test added to the page. */
  async function reset(page: Page) {
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    page.removeAllListeners('request');
    page.removeAllListeners('dialog');
    await leave(page);
  }
  async function newPage(origin: string) {
    if (browser === undefined) throw new Error('there is no browser yet');
    const context = await browser.newContext({
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
    });
    watch(context, origin, complaints);
    const page = await context.newPage();
    page.setDefaultTimeout(patienceMs);
    return page;
  }
  return stage;
}

/**
 * Advances the fake clock of the page until an element appears (or disappears, if `isGone`). After
 * an outage, the page polls only every 15 s, so the clock makes tests of outages faster.
 */
export async function hurryTo(page: Page, element: Locator, { isGone = false } = {}): Promise<void> {
  await waitFor(`${element} to be ${isGone ? 'gone' : 'there'}`, async () => {
    await page.clock.fastForward(1_000);
    return (await element.isVisible()) !== isGone;
  });
}

async function setLook(page: Page, { width, theme }: Look): Promise<void> {
  await page.setViewportSize({ width, height: heights[width] ?? 900 });
  await page.emulateMedia({ colorScheme: theme });
}

/** Watches for errors and forbidden requests of the pages. Adds each one to `complaints`. */
function watch(context: BrowserContext, address: string, complaints: string[]): void {
  context.on('weberror', (error) => complaints.push(`script: ${error.error().message}`));
  context.on('console', (message) => {
    const text = message.text();
    if (/content security policy/i.test(text)) complaints.push(`policy: ${text}`);
  });
  context.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    const isOwn = origin === new URL(address).origin || protocol === 'data:' || protocol === 'blob:';
    if (!isOwn) complaints.push(`another origin: ${request.url()}`);
  });
}

/**
 * Returns a function that limits the upload rate of a page, in bytes per second. -1 removes the
 * limit.
 */
export async function limitUpload(page: Page): Promise<(bytesPerSecond: number) => Promise<unknown>> {
  const network = await page.context().newCDPSession(page);
  // Detaching this session from the browser removes the limit.
  cleanUpAfter('test', () => network.detach().catch(() => undefined));
  return (uploadThroughput) =>
    network.send('Network.emulateNetworkConditions', {
      ...{ offline: false, latency: 0, downloadThroughput: -1, uploadThroughput },
    });
}

/**
 * Drops a local file on the page, like a drag from the desktop. The browser reads the file itself,
 * so the test transfers no bytes.
 */
export async function dropFile(page: Page, path: string): Promise<void> {
  const target = await page.locator('.drop').boundingBox();
  if (target === null) throw new Error('nothing can be dropped here');
  const browser = await page.context().newCDPSession(page);
  const at = { x: target.x + target.width / 2, y: target.y + 20 };
  const data = { items: [], files: [path], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
    await browser.send('Input.dispatchDragEvent', { type, ...at, data });
  }
  await browser.detach();
}

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** Expects that axe-core finds no violation. Lists the violated rules with their elements. */
export async function expectAccessible(page: Page): Promise<void> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source);
  const violations = (await page.evaluate(
    'axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)',
  )) as readonly Violation[];
  expect(
    violations.map(({ id, help, nodes }) => [
      id,
      help,
      nodes.map((node) => `${node.html} ${node.failureSummary}`),
    ]),
  ).toEqual([]);
}

export async function expectNoSideScroll(page: Page): Promise<void> {
  const wide = await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  expect(wide).toBeLessThanOrEqual(0);
}

/**
 * Expects that the main buttons are visible without scrolling, and that the main buttons in the
 * heading are still visible at the end of the page.
 */
async function expectMainInReach(page: Page): Promise<void> {
  const beyond = (selector: string) =>
    page.evaluate(`[...document.querySelectorAll('${selector}')].flatMap((button) => {
      const { top, bottom } = button.getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight ? [] : button.innerText;
    })`);
  await page.evaluate('scrollTo(0, 0)');
  expect(await beyond('#main .button-main')).toEqual([]);
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
  expect(await beyond('#main .page-actions .button-main')).toEqual([]);
  await page.evaluate('scrollTo(0, 0)');
}

const pictures = resolve(packageRoot, 'docs', 'console');
/**
 * Whether this run takes screenshots. If so, a test may spend extra time so that the screenshots
 * show more.
 */
export const isPictured = (process.env['SLUICE_SCREENSHOTS'] ?? '') !== '';

/**
 * Writes a screenshot to docs/console if SLUICE_SCREENSHOTS is set. Requires the font Inter
 * (`fonts-inter`), without which the screenshot shows another font.
 */
async function picture(page: Page, name: string, { width, theme }: Look): Promise<void> {
  if (!isPictured) return;
  await mkdir(pictures, { recursive: true });
  const suffix = width === desktop ? theme : `${theme}-${width}`;
  await page.screenshot({ path: join(pictures, `${name}-${suffix}.png`), animations: 'disabled' });
}

/**
 * Two pairs of width and theme that together cover each width and each theme. A run with
 * screenshots uses all four pairs.
 */
const looks: readonly Look[] = isPictured
  ? ([desktop, phone] as const).flatMap((width) => themes.map((theme) => ({ width, theme })))
  : [
      { width: desktop, theme: 'light' },
      { width: phone, theme: 'dark' },
    ];

/**
 * Expects that a screen is accessible, is not too wide and has its buttons within reach, in both
 * themes and widths. Also takes screenshots. `prepare` waits for the content of the screen. Returns
 * the page.
 */
export async function expectGoodInEveryLook(
  stage: Pick<ConsoleStage, 'open'>,
  name: string,
  path: string,
  prepare: (page: Page) => Promise<unknown>,
): Promise<Page> {
  const page = await stage.open(path);
  await prepare(page);
  for (const look of looks) {
    await setLook(page, look);
    await expectAccessible(page);
    await expectNoSideScroll(page);
    if (look.width === phone) await expectMainInReach(page);
    await picture(page, name, look);
  }
  await setLook(page, { width: desktop, theme: 'light' });
  return page;
}
