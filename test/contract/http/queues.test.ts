import { afterEach, expect, test } from 'vitest';
import { serve, type TestServer } from '../../support/http.ts';
import { redisAvailable } from '../../support/redis.ts';
import { openTestSystem, type TestSystem } from '../../support/system.ts';

const adminKey = 'admin-key-of-the-tests-0123';
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(settings: Record<string, string>, queue: 'postgres' | 'redis' = 'postgres') {
  const system = await openTestSystem({ settings, queue });
  cleanups.push(() => system.close());
  const server = await serve(system);
  cleanups.push(() => server.stop());
  return { system, server };
}

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

const look = ({ address }: TestServer, path: string, authorization?: string, method = 'GET') =>
  fetch(new URL(path, address), { method, headers: authorization === undefined ? {} : { authorization } });

interface Board {
  readonly queues: readonly {
    readonly name: string;
    readonly readOnlyMode: boolean;
    readonly counts: Readonly<Record<string, number>>;
  }[];
}

test.each(redisAvailable ? (['postgres', 'redis'] as const) : (['postgres'] as const))(
  'the dashboard shows the queues on %s to whoever has the key, and changes nothing',
  async (queue) => {
    const { system, server } = await start({ ADMIN_KEY: adminKey }, queue);
    await notifyOnce(system);
    for (const authorization of [basic('admin', adminKey), `Bearer ${adminKey}`]) {
      const page = await look(server, '/admin/queues', authorization);
      expect([page.status, page.headers.get('content-type')]).toEqual([
        200,
        expect.stringContaining('text/html'),
      ]);
      expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(page.headers.get('x-frame-options')).toBe('DENY');
      const [, script = ''] = /src="(static\/js\/main[^"]+)"/.exec(await page.text()) ?? [];
      expect((await look(server, `/admin/queues/${script}`, authorization)).status).toBe(200);
    }
    const answer = await look(server, '/admin/queues/api/queues', `Bearer ${adminKey}`);
    const { queues } = (await answer.json()) as Board;
    expect(queues.map(({ name, readOnlyMode }) => [name, readOnlyMode])).toEqual([
      ['sluice', true],
      ['sluice-exports', true],
    ]);
    expect(queues[0]?.counts).toMatchObject({ waiting: 1 });
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const path = '/admin/queues/api/queues/sluice/empty';
      const { status } = await look(server, path, `Bearer ${adminKey}`, method);
      expect([method, status >= 400 && status < 500]).toEqual([method, true]);
    }
    expect(
      (await look(server, '/admin/queues/api/queues/sluice/empty', `Bearer ${adminKey}`, 'PUT')).status,
    ).toBe(405);
    const { paths } = (await (await look(server, '/openapi.json')).json()) as { paths: object };
    expect(Object.keys(paths).filter((path) => path.startsWith('/admin'))).toEqual([]);
  },
);

test('nobody else sees any of it, and whoever guesses must wait', async () => {
  const { system, server } = await start({ ADMIN_KEY: adminKey });
  const paths = ['/admin/queues', '/admin/queues/api/queues', '/admin/queues/static/images/logo.svg'];
  for (const path of paths) {
    const { status, headers } = await look(server, path);
    expect([path, status, headers.get('www-authenticate')]).toEqual([
      path,
      401,
      expect.stringMatching(/^Basic /),
    ]);
  }
  const wrong = [
    basic('root', adminKey),
    basic('admin', `${adminKey}x`),
    basic('admin', ''),
    `Bearer ${system.key}`,
    `Token ${adminKey}`,
  ];
  for (const each of wrong)
    expect([each, (await look(server, '/admin/queues', each)).status]).toEqual([each, 401]);
  for (let n = wrong.length; n < 10; n++) await look(server, '/admin/queues', 'Bearer no');
  const refused = await look(server, '/admin/queues', `Bearer ${adminKey}`);
  expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
});

test('without the setting there is no such address', async () => {
  const { server } = await start({});
  expect((await look(server, '/admin/queues', `Bearer ${adminKey}`)).status).toBe(404);
});

/** A job that nobody takes, since no worker runs. */
async function notifyOnce({ system }: TestSystem): Promise<void> {
  await system.queue.notify([{ taskId: 1, kind: 'finish', attempt: 0 }]);
}
