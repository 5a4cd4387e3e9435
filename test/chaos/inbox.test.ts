import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { report } from '../support/exactness.ts';
import { drop, list, readConcluded } from '../support/inbox.ts';
import { onSite, type Site } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

const count = 80;
/** Every so many files one has a megabyte or more. */
const largeEvery = 20;
const largeRows = 20_000;
/** All workers are killed when so many files have been accepted, and once more when so many are concluded. */
const killsAtLoads = [1, 20, 45];
const killsAtConcluded = [65];

// proves: inbox-once
test('files dropped while workers are killed are each loaded once, in order, and end in done with a receipt', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-inbox-'));
  const settings = { INBOX_DIR: directory, INBOX_STABLE_MS: '100' };
  try {
    await onSite({ queue: 'postgres', settings }, async (site) => {
      const folder = join(directory, 'default');
      await site.workers(2);
      const contents = Array.from({ length: count }, (_, index) => contentOf(index));
      const dropping = dropAll(folder, contents);
      for (const loads of killsAtLoads) {
        await reached(site, 'loads', loads);
        await site.killWorkers();
        await site.work();
      }
      await dropping;
      for (const concluded of killsAtConcluded) {
        await reached(site, "inbox_files where state = 'concluded'", concluded);
        await site.killWorkers();
        await site.work();
      }
      await reached(site, "inbox_files where state = 'concluded'", count);
      await expectExact(site, folder, contents);
    });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

/** Every file writes the same user, the two before it again, and some of its own. */
function contentOf(index: number): string {
  const rows = index % largeEvery === largeEvery - 1 ? largeRows : 5;
  const own = Array.from({ length: rows }, (_, row) => `own-${index}-${row},${index},${'x'.repeat(40)}\n`);
  const near = [index, index + 1, index + 2].map((at) => `near-${at},${index},\n`);
  return `user_id,last,filler\nshared,${index},\n${near.join('')}${own.join('')}`;
}

async function dropAll(folder: string, contents: readonly string[]): Promise<void> {
  // Files of the same tick of the clock go by name.
  for (const [index, content] of contents.entries()) await drop(join(folder, nameOf(index)), content);
}

function nameOf(index: number): string {
  return `${String(index).padStart(3, '0')}.csv`;
}

async function reached(site: Site, what: string, least: number): Promise<void> {
  await waitFor(
    `${least} ${what}`,
    async () => {
      const [row] = await site.sql<{ count: number }>(`select count(*)::int as count from sluice.${what}`);
      return (row?.count ?? 0) >= least;
    },
    { everyMs: 10 },
  );
}

async function expectExact(site: Site, folder: string, contents: readonly string[]): Promise<void> {
  const found = await readConcluded(folder);
  const receipts = found.map(({ receipt }) => receipt).sort((a, b) => (a.file < b.file ? -1 : 1));
  expect(receipts.map(({ file }) => file)).toEqual(contents.map((_, index) => nameOf(index)));
  expect(new Set(found.map(({ outcome }) => outcome))).toEqual(new Set(['done']));
  expect(new Set(receipts.map(({ job_id }) => job_id)).size).toBe(count);
  for (const { path, receipt } of found) {
    expect(await readFile(path, 'utf8'), path).toBe(contents[Number(receipt.file.slice(0, 3))]);
  }
  expect((await list(folder)).filter((name) => !['companies', 'done', 'users'].includes(name))).toEqual([]);
  const [loads] = await site.sql<{ loads: number; losses: number }>(
    `select count(*)::int as loads, sum((select sum(losses) from sluice.load_chunks c where c.load_id = l.load_id))::int as losses
     from sluice.loads l where status = 'completed'`,
  );
  expect(loads?.loads).toBe(count);
  const stored = await site.sql<{ user_id: string; last: string }>(
    'select user_id, metadata ->> \'last\' as last from sluice.users order by user_id collate "C"',
  );
  expect(stored.map(({ user_id, last }) => `${user_id},${last}`)).toEqual(oracle(contents));
  report(`inbox: ${killsAtLoads.length + killsAtConcluded.length} kills, ${loads?.losses} chunks lost`);
}

/** The files laid over each other one after another. */
function oracle(contents: readonly string[]): string[] {
  const users = new Map<string, string>();
  for (const content of contents) {
    for (const line of content.split('\n').slice(1, -1)) {
      const [id = '', last = ''] = line.split(',');
      users.set(id, last);
    }
  }
  return [...users].map(([id, last]) => `${id},${last}`).sort();
}
