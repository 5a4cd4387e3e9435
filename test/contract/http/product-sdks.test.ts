import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readEvents } from '../../support/events.ts';
import { openServer } from '../../support/http.ts';
import { readProfiles } from '../../support/load-file.ts';

/* The SDKs of other products as npm has them, in processes of their own. They are told the address and a key, and nothing else. */

const { t, server } = await openServer();

/** Runs a program of `test/support/sdks` against an environment of its own; returns what is stored then. */
async function run(program: string) {
  const { key, environment } = await t.addEnvironment(program);
  const path = fileURLToPath(new URL(`../../support/sdks/${program}.mjs`, import.meta.url));
  const { stderr } = await promisify(execFile)(process.execPath, [path, server.address, key]);
  expect(stderr).toBe('');
  const events = await readEvents(t.system, environment.environmentId);
  expect(JSON.stringify(events)).not.toContain(key);
  return {
    events: events.sort((a, b) => a.name.localeCompare(b.name)),
    profiles: await readProfiles(t.system, environment.environmentId),
  };
}

const at = '2026-03-04T05:06:07.123Z';

// proves: product-sdks
test('@segment/analytics-node: every call is read back', async () => {
  const { events, profiles } = await run('segment-node');
  expect(profiles).toEqual({
    users: { ada: { company: 'acme', metadata: { plan: 'pro', seats: 7 } } },
    companies: { acme: { metadata: { size: 120 } } },
  });
  expect(events).toMatchObject([
    { type: 'page_view', name: 'Home', user: 'anon', metadata: { hostname: 'example.com', pathname: '/a' } },
    { id: 'm1', name: 'Paid', user: 'ada', company: 'acme', at, metadata: { amount: 49.5 } },
    { type: 'page_view', name: 'Start', user: 'ada' },
  ]);
});
