import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ProfileChange, UserProfile } from '../../src/api/profile.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Finished, type Running, runCli, startCli } from './cli.ts';

let dataDir: string;
let database: TestDatabase;
let client: pg.Client;
const args = (words: readonly string[]) => [...words, '--data-dir', dataDir];
const sluice = (...words: string[]): Promise<Finished> =>
  runCli(args(words), { env: { DATABASE_URL: database.url } });
const follow = (...words: string[]): Running =>
  startCli(args(words), { env: { DATABASE_URL: database.url } });
const json = <T>({ stdout }: Finished): T => JSON.parse(stdout) as T;

const ndjson = `{"user_id":"u1","company_id":"acme","plan":"pro","size":12345678901234567890,"name":"Ada\\u0007","is_admin":false,"wait_seconds":65,"since":"2026-11-20T03:00:00Z"}
{"user_id":"u2","company_id":"acme","plan":"free"}
{"user_id":"u3","plan":"pro"}
{"company_id":"globex","industry":"tools"}
`;

beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-reading-'));
  await writeFile(join(dataDir, 'mixed.ndjson'), ndjson);
  expect(await sluice('import', join(dataDir, 'mixed.ndjson'))).toMatchObject({ code: 0 });
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query('select sluice.ensure_events_partition(now())');
});
afterAll(async () => {
  await client?.end();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true, maxRetries: 40, retryDelay: 50 });
});

async function addEvent(id: string, user: string, name: string, ago = '0 s'): Promise<void> {
  await client.query(
    `insert into sluice.events (environment_id, event_id, event_name, user_id, source, inserted_at, metadata)
    select environment_id, $1, $2, $3, 'backend-http', now() - $4::interval, '{"n": 1}'
    from sluice.environments where name = 'default'`,
    [id, name, user, ago],
  );
}

interface Profile {
  readonly user_id?: string;
  readonly company_id: string;
}

describe('sluice users and companies', () => {
  test('show: profile, company and latest events, with every digit', async () => {
    await addEvent('e1', 'u1', 'opened', '2 s');
    await addEvent('e2', 'u1', 'closed', '1 s');
    const shown = await sluice('users', 'show', 'u1', '--events', '1');
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toMatch(/^user id +u1\ncompany id +acme\n/);
    expect(shown.stdout).toMatch(/^plan +pro$/m);
    for (const line of [/^is_admin +false$/m, /^wait_seconds +65$/m, /^since +2026-11-20T03:00:00Z$/m])
      expect(shown.stdout).toMatch(line);
    expect(shown.stdout).toMatch(/Z {2}closed {2}u1 {2}\{"n":1\}\n/);
    expect(shown.stdout).not.toContain('opened');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(shown.stdout).not.toMatch(/[\u0000-\u0008]/);
    const { stdout } = await sluice('users', 'show', 'u1', '--json');
    expect(stdout).toContain('12345678901234567890');
    expect(JSON.parse(stdout)).toMatchObject({
      user: { user_id: 'u1', company_id: 'acme', metadata: { plan: 'pro' } },
      company: { company_id: 'acme', metadata: {} },
      events: [{ event_id: 'e2' }, { event_id: 'e1' }],
    });
    expect(json(await sluice('companies', 'show', 'globex', '--json'))).toMatchObject({
      company_id: 'globex',
      metadata: { industry: 'tools' },
    });
    expect((await sluice('companies', 'show', 'globex')).stdout).toMatch(/^industry +tools$/m);
  });

  test('list: by property and company, up to a limit, as a table or JSON', async () => {
    const ids = async (...words: string[]) =>
      json<Profile[]>(await sluice(...words, '--json')).map(
        ({ user_id, company_id }) => user_id ?? company_id,
      );
    expect(await ids('users', 'list')).toEqual(['u1', 'u2', 'u3']);
    expect(await ids('users', 'list', '--property', 'plan:pro')).toEqual(['u1', 'u3']);
    expect(await ids('users', 'list', '--property', 'plan:pro', '--company', 'acme')).toEqual(['u1']);
    expect(await ids('users', 'list', '--property', 'size:12345678901234567890')).toEqual(['u1']);
    expect(await ids('users', 'list', '--property', 'plan:none')).toEqual([]);
    expect(await ids('companies', 'list', '--property', 'industry:tools')).toEqual(['globex']);
    const table = await sluice('users', 'list', '--limit', '2');
    expect(table.stdout).toMatch(/^user id +company id +last seen at +metadata\n/);
    expect(table.stderr).toBe('There are more; --limit shows them.\n');
    expect((await sluice('users', 'list', '--property', 'plan')).code).toBe(2);
    expect((await sluice('users', 'list', '--segment', 'none')).code).toBe(2);
  });

  // proves: value-provenance
  test('history: who changed what, and show --provenance: which line of which file', async () => {
    await client.query(
      `update sluice.users set metadata = metadata || '{"plan": "gold\\u001b[31m"}' where user_id = 'u3'`,
    );
    const told = await sluice('users', 'history', 'u3');
    expect(told.code).toBe(0);
    const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  `;
    const made = String.raw`made by import mixed\.ndjson \([0-9a-f-]{36}\)`;
    expect(told.stdout).toMatch(
      new RegExp(
        `^${time}changed by operator\n +plan +pro → gold�\\[31m\n${time}${made}\n +plan +– → pro\n$`,
      ),
    );
    const newest = await sluice('users', 'history', 'u3', '--limit', '1');
    expect(newest.stderr).toContain('There are more');
    const all = json<ProfileChange[]>(await sluice('users', 'history', 'u3', '--json'));
    expect(all.map(({ action, by }) => [action, by])).toEqual([
      ['changed', 'operator'],
      ['made', 'load'],
    ]);
    const company = await sluice('companies', 'show', 'globex', '--provenance');
    expect(company.stdout).toMatch(/Set by:\nindustry +.*Z {2}import mixed\.ndjson \(.*\), line 4\n/);
    const user = json<{ user: UserProfile }>(await sluice('users', 'show', 'u2', '--provenance', '--json'));
    expect(user.user.provenance).toMatchObject({
      properties: { plan: { row: 2, line: 2 } },
      company: { row: 2 },
    });
    expect(await sluice('companies', 'history', 'nobody')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no company "nobody" in the environment default.'),
    });
  });
});

// proves: identities
test('sluice users aliases gives a user another id, which every command answers as the user, and lists it', async () => {
  await addEvent('a1', 'anon-1', 'came');
  expect(await sluice('users', 'aliases', 'u1')).toMatchObject({ code: 0, stderr: 'u1 has no aliases.\n' });
  const given = await sluice('users', 'aliases', 'u1', '--add', 'anon-1');
  expect(given.stdout).toMatch(
    /^anon-1 is now an alias of u1\. Job [0-9a-f-]{36} moves what was stored under it\.\n$/,
  );
  expect((await sluice('users', 'aliases', 'anon-1', '--add', 'anon-1')).stdout).toMatch(
    /^anon-1 was already an alias of u1\.\n$/,
  );
  expect(json(await sluice('users', 'aliases', 'anon-1', '--json'))).toMatchObject([{ alias: 'anon-1' }]);
  const shown = json<{ user: UserProfile }>(await sluice('users', 'show', 'anon-1', '--json'));
  expect(shown.user.user_id).toBe('u1');
  expect((await sluice('users', 'history', 'anon-1')).stdout).toContain('made by import mixed.ndjson');
  const taken = await sluice('users', 'aliases', 'u2', '--add', 'anon-1');
  expect([taken.code, taken.stderr]).toEqual([1, expect.stringContaining('belongs to another person')]);
  expect((await sluice('users', 'aliases', 'u1', '--add', ' ')).code).toBe(2);
  expect((await sluice('users', 'aliases', 'u1', '--merge')).code).toBe(2);
});

describe('sluice events tail', () => {
  test('prints the latest events and then each new one, once, until Ctrl-C, which ends it with 0', async () => {
    await addEvent('t1', 'tailed', 'first', '5 s');
    await addEvent('t2', 'tailed', 'second', '4 s');
    const all = follow('events', 'tail', '--user', 'tailed', '--last', '1', '--json');
    const named = follow('events', 'tail', '--event', 'third', '--last', '0');
    await waitFor('the latest event', () => all.stdout.includes('t2'));
    // The other one has looked once when it shows what comes now.
    await waitFor('the other one to follow', async () => {
      await addEvent(`p${Date.now()}`, 'pulse', 'third');
      return named.stdout.includes('pulse');
    });
    await addEvent('t3', 'tailed', 'third');
    await addEvent('t4', 'tailed', 'fourth', '3 s');
    await addEvent('t5', 'other', 'fifth');
    await waitFor('the new events', () => ['t3', 't4'].every((id) => all.stdout.includes(id)));
    await waitFor('that of the name', () => named.stdout.includes('tailed'));
    all.signal('SIGINT');
    named.signal('SIGINT');
    const { code, stdout, stderr } = await all.finished;
    expect([code, stderr]).toEqual([0, '']);
    const ids = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { event_id: string }).event_id);
    expect([ids[0], [...ids].sort()]).toEqual(['t2', ['t2', 't3', 't4']]);
    const other = await named.finished;
    expect(other.code).toBe(0);
    expect(other.stdout).toMatch(/^\S+ \S+Z {2}third {2}tailed {2}\{"n":1\}$/m);
    expect(other.stdout).not.toMatch(/fourth|fifth/);
  });
});
