import { existsSync } from 'node:fs';
import { type BrowserServer, chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** WebSocket URL of the shared browser. */
    browserUrl: string;
  }
}

/**
 * Possible paths of Chromium. The headless shell is first because it needs only a third of the
 * processor time for the same pages.
 */
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

export const chromiumPath: string | null = places.find((path) => existsSync(path)) ?? null;

/** Starts one browser for all test files of a project. vitest calls this before the files. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (chromiumPath === null) throw new Error('there is no Chromium');
  const server: BrowserServer = await chromium.launchServer({
    executablePath: chromiumPath,
    // Chromium's sandbox does not work for root, and the browser opens only pages of this service.
    args: [
      ...['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb', '--disable-gpu'],
      // Each page runs its scripts once, so optimizing the scripts would take more time than it
      // saves.
      '--js-flags=--no-opt --no-maglev',
    ],
  });
  project.provide('browserUrl', server.wsEndpoint());
  return () => server.close();
}
