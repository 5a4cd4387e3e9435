import { existsSync } from 'node:fs';
import { type BrowserServer, chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The address of the one browser of the project. */
    browserUrl: string;
  }
}

/**
 * The browser without windows is first, because the same pages take a third of the processor time.
 */
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** The path of Chromium. `null` if there is none. */
export const chromiumPath: string | null = places.find((path) => existsSync(path)) ?? null;

/** Starts the browser of a project. vitest runs this before the files of the project. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (chromiumPath === null) throw new Error('there is no Chromium');
  const server: BrowserServer = await chromium.launchServer({
    executablePath: chromiumPath,
    // Root has no sandbox, and the browser opens only this service.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb', '--disable-gpu'],
  });
  project.provide('browserUrl', server.wsEndpoint());
  return () => server.close();
}
