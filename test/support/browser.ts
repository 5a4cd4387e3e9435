import { existsSync } from 'node:fs';
import { type BrowserServer, chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Where the one browser of the project listens. */
    browserUrl: string;
  }
}

/** The one without windows first: the same pages cost it a third of the processor time. */
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** Where Chromium is; null where there is none. */
export const chromiumPath: string | null = places.find((path) => existsSync(path)) ?? null;

/** Run by vitest before the files of the project: one browser for all of them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (chromiumPath === null) throw new Error('there is no Chromium');
  const server: BrowserServer = await chromium.launchServer({
    executablePath: chromiumPath,
    // As root it has no sandbox of its own; it opens nothing but this service.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb', '--disable-gpu'],
  });
  project.provide('browserUrl', server.wsEndpoint());
  return () => server.close();
}
