import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/base/package-root.ts';
import { readConsoleAssets, renderShell } from '../../src/console/assets.ts';
import { bundleConsole } from '../../tools/bundle-console.ts';
import { consoleStage } from '../support/browsers/console.ts';

const stage = consoleStage();
const folder = mkdtempSync(join(tmpdir(), 'sluice-console-'));
beforeAll(() => bundleConsole(join(packageRoot, 'src'), folder, []));
afterAll(() => rmSync(folder, { recursive: true }));

test('a console without capabilities has the screens of the core, and no other link', async () => {
  const assets = await readConsoleAssets(folder);
  if (assets === null) throw new Error('nothing was built');
  const jobId = await stage.load('user_id,name\nu1,Ada\n,nobody\n', 'core.csv');
  await stage.t.ended(jobId);
  const page = await stage.open('/');
  await page.route(/:\d+\/console/, (route) => {
    const asset = assets.files.get(new URL(route.request().url()).pathname.split('/').at(-1) ?? '');
    return asset === undefined
      ? route.fulfill({ contentType: 'text/html', body: renderShell(assets.manifest, '') })
      : route.fulfill({ contentType: asset.type, body: asset.bodies.identity });
  });
  const show = async (path: string, heading: string): Promise<void> => {
    await page.goto(stage.address(path));
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
    const loading = page.locator('#main [role=status]', { hasText: 'Loading' });
    await expect.poll(() => loading.count()).toBe(0);
    expect(await page.getByRole('alert').count()).toBe(0);
  };
  await show(`/jobs/${jobId}`, 'core.csv');
  const screens = page.getByRole('navigation', { name: 'Screens' }).getByRole('link');
  const titles = ['Overview', 'Jobs', 'Export', 'Users', 'Companies', 'Segments', 'Access'];
  expect(await screens.allInnerTexts()).toEqual(titles);
  expect(await page.locator('.menu > summary').isVisible()).toBe(false);
  for (const title of titles) await show((await hrefOf(title)) ?? '', title);
  await show(`/jobs/${jobId}/refused`, 'Refused records');
  await show('/people/u1', 'u1');
  await show('/load', 'No such page');

  async function hrefOf(title: string): Promise<string | undefined> {
    const href = await screens.filter({ hasText: title }).getAttribute('href');
    return href?.slice('/console'.length);
  }
});
