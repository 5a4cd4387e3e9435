import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, expect, inject, test } from 'vitest';
import { access } from '../../../../src/capabilities/oidc/access.ts';
import type { Grant } from '../../../../src/capabilities/oidc/store.ts';
import { apply } from '../../../support/servers/definitions.ts';
import { serve } from '../../../support/servers/http.ts';
import { openTestSystem } from '../../../support/servers/system.ts';
import { patienceMs } from '../../../support/wait-for.ts';
import { clientId, clientSecret, openProvider } from '../support/provider.ts';

const port = await freePort();
const publicUrl = `http://127.0.0.1:${port}`;
const provider = await openProvider(publicUrl);
const t = await openTestSystem({
  settings: {
    PORT: String(port),
    PUBLIC_URL: publicUrl,
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: clientId,
    OIDC_CLIENT_SECRET: clientSecret,
  },
});
const server = await serve(t);
const browser: Browser = await chromium.connect(inject('browserUrl'));
afterAll(async () => {
  await browser.close();
  await server.stop();
  await t.close();
  await provider.stop();
});

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port: free } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return free;
}

test('a person signs in at the provider, loses a group, learns why, and signs out at the provider', async () => {
  const setAccess = (grant: Grant) => apply(t, t, { access: [grant] }, { lists: [access] });
  const wanted: Grant = { key: 'data', claim: 'groups', value: 'data', scopes: ['read'] };
  await setAccess(wanted);
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(patienceMs);
  const signIn = async () => {
    await page.getByRole('button', { name: /^Sign in with 127/ }).click();
    if (await page.getByPlaceholder('Enter any login').isVisible()) return;
    await page.waitForURL(/interaction|console/);
  };
  await page.goto(`${publicUrl}/console/jobs`);
  await signIn();
  await page.getByPlaceholder('Enter any login').fill('anna');
  await page.getByPlaceholder('and password').fill('x');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText(/none of your groups has access/).waitFor();
  expect(page.url()).toBe(`${publicUrl}/console/jobs`);

  provider.groups.set('anna', ['data']);
  await page.goto(`${publicUrl}/console/jobs`);
  await signIn();
  await page.getByRole('heading', { name: 'Jobs', exact: true, level: 1 }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/console/jobs');
  expect(page.url()).not.toMatch(/code=|state=/);

  await setAccess({ ...wanted, value: 'others' });
  await page.reload();
  await page.getByText(/None of your groups has access to the environment default/).waitFor();

  await setAccess(wanted);
  await signIn();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL((url) => url.href.startsWith(`${provider.issuer}/session/end`));
  await page.getByRole('button', { name: /sign me out/ }).click();
  await page.getByRole('button', { name: /^Sign in with 127/ }).waitFor();
});
