import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { preparedDataDir, startService } from './cli.ts';
import { followPage, type Reader, readPage, shellFolder, writeFiles } from './pages.ts';
import { call } from './service.ts';

/** Pages, in an order in which a person might read them. */
const names = [
  'README.md',
  'docs/loads.md',
  'docs/exports.md',
  'docs/where.md',
  'docs/start.md',
  'docs/undo.md',
  'docs/rules.md',
  'docs/how-to/sdks.md',
  'docs/how-to/segment.md',
  'docs/how-to/hosted-analytics.md',
] as const;

// proves: docs-true
test('the commands of the README, the guides, the tutorials and the how-tos work in their order, with the documented answers', async () => {
  const pages = await Promise.all(names.map(readPage));
  const warehouse = await readPage('docs/how-to/warehouse.md');
  // Each of these pages has a schedules file with the same name.
  const nightly = await readPage('docs/how-to/nightly-file.md');
  const dataDir = await preparedDataDir();
  const folder = await shellFolder();
  const settings = Object.assign({}, ...[...pages, nightly, warehouse].map((page) => page.settings));
  await writeFiles(warehouse, folder);
  const service = await startService(dataDir, settings, { cwd: folder });
  const reader = {
    folder,
    url: service.url,
    key: service.key ?? '',
    env: { ...settings, DATA_DIR: dataDir },
  };
  const followOthers = async () => {
    for (const page of pages) expect(await followPage(page, reader)).toEqual([]);
  };
  const [exported] = await Promise.all([followPage(warehouse, reader), followOthers()]);
  expect(exported).toEqual([]);
  expect(await followPage(nightly, reader)).toEqual([]);
  await runSegmentFunctions(reader);
  const calls = pages.flatMap(({ commands }) => commands).filter(({ statuses }) => statuses.length > 0);
  expect(calls.length).toBeGreaterThan(25);
});

/**
 * Runs a destination function in plain Node, as Segment would. A RudderStack webhook sends the same
 * requests.
 */
async function runSegmentFunctions({ folder, url, key }: Reader): Promise<void> {
  const program = `
    class RetryError extends Error {}
    ${await readFile(join(folder, 'segment-function.js'), 'utf8')}
    const [url, key] = process.argv.slice(1);
    const handlers = { identify: onIdentify, group: onGroup, track: onTrack, page: onPage, screen: onScreen };
    const calls = Object.keys(handlers).map((type) => ({
      type, userId: 'segment', groupId: 'functions', event: 'Ran', messageId: 'segment' + type, traits: { by: 'function' },
    }));
    for (const call of calls) await handlers[call.type](call, { url, key });
    const failure = (call, settings) => onTrack(call, settings).then(() => 'none', (error) => error.constructor.name);
    const [, , track] = calls;
    console.log(await failure(track, { url, key: 'wrong' }), await failure({ ...track, event: '' }, { url, key }));
    console.log(await failure(track, { url: 'http://127.0.0.1:1', key }));`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...['--input-type=module', '-e', program, url, key],
  ]);
  expect(stdout).toBe('Error Error\nRetryError\n');
  const user = await call(url, key, '/v1/users/segment');
  expect(await user.json()).toMatchObject({ company_id: 'functions', metadata: { by: 'function' } });
  const { data: events } = (await (await call(url, key, '/v1/users/segment/events')).json()) as {
    readonly data: readonly { readonly event_name: string }[];
  };
  expect(events.map(({ event_name }) => event_name).sort()).toEqual(['Ran', 'page_view', 'page_view']);
}
