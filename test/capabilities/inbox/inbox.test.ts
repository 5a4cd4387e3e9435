import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  appendFile,
  chmod,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uuidv7 } from '../../../src/base/uuid.ts';
import { concludeFiles } from '../../../src/capabilities/inbox/conclude.ts';
import { Backoff, createInboxOpener } from '../../../src/capabilities/inbox/context.ts';
import { lookInto } from '../../../src/capabilities/inbox/folders.ts';
import { optionsWithoutMapping } from '../../../src/capabilities/inbox/mapping.ts';
import { insertInboxFile, readOpenInboxFiles, rowKey } from '../../../src/capabilities/inbox/store.ts';
import { type ReadyFile, takeIn, takeInAgain } from '../../../src/capabilities/inbox/take-in.ts';
import { InboxWatch } from '../../../src/capabilities/inbox/watch.ts';
import { readDeliveryPolicy } from '../../../src/capabilities/notifications/deliver.ts';
import { addSubscription } from '../../../src/capabilities/notifications/subscriptions.ts';
import type { RulesDocument } from '../../../src/capabilities/rules/document.ts';
import { applyRules } from '../../../src/capabilities/rules/store.ts';
import type { System } from '../../../src/context.ts';
import type { Environment } from '../../../src/domain/caller.ts';
import type { Outcome } from '../../../src/domain/job.ts';
import { endedStatuses } from '../../../src/domain/load.ts';
import { cancelLoad } from '../../../src/load/end.ts';
import { readLoadResult, readLoads } from '../../../src/load/read-store.ts';
import { removeAbandoned } from '../../../src/load/received.ts';
import { renderLoadRun } from '../../../src/load/render-load.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import { readProfiles, withoutQueue } from '../../support/files/load-file.ts';
import { textRow, workbookFile } from '../../support/files/workbook-file.ts';
import { zipFile } from '../../support/files/zip-file.ts';
import { checkRun } from '../../support/oracles/run-document.ts';
import { type CollectedLog, collectLog } from '../../support/servers/collected-log.ts';
import { openTestSystem, type TestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from '../notifications/support/webhook-receiver.ts';
import { type Concluded, concluded, drop, list, readConcluded } from './support/inbox.ts';

const never = new AbortController().signal;
let t: TestSystem;
let inbox: string;
let log: CollectedLog;
let environments = 0;

beforeAll(async () => {
  inbox = await mkdtemp(join(tmpdir(), 'sluice-inbox-'));
  log = collectLog();
  const settings = {
    INBOX_DIR: inbox,
    INBOX_STABLE_MS: '400',
    LOG_LEVEL: 'info',
    NOTIFY_ALLOW_PRIVATE: 'true',
  };
  t = await openTestSystem({ settings, log: log.log });
  t.startWorker();
  t.startWorker();
});

afterAll(async () => {
  await t.close();
  await rm(inbox, { recursive: true, force: true });
});

async function tenant(): Promise<{ environment: Environment; folder: string }> {
  const { environment } = await t.addEnvironment(`tenant-${++environments}`);
  const folder = join(inbox, environment.name);
  // The watcher creates the folder `companies` last.
  await waitFor('the folders of the environment', () => stat(join(folder, 'companies')));
  return { environment, folder };
}

const users = (...ids: readonly string[]): string =>
  `user_id,plan\n${ids.map((id) => `${id},pro\n`).join('')}`;
const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex');

/** Returns the messages in the outbox. `null` if there are none yet. */
async function readOutbox(outbox: string): Promise<string[] | null> {
  const names = await readdir(outbox).catch(() => []);
  const mails = names.filter((name) => name.endsWith('.eml'));
  return mails.length === 0 ? null : Promise.all(mails.map((name) => readFile(join(outbox, name), 'utf8')));
}

function messagesOf(path: string): string[] {
  return log.lines.filter((line) => line['path'] === path).map((line) => String(line['msg']));
}

describe('a dropped file', () => {
  // proves: rules-everywhere
  test('a dropped file keeps to the rules of its environment', async () => {
    const { environment, folder } = await tenant();
    const rules: RulesDocument = { users: { properties: { plan: { enum: ['pro'], otherwise: 'refuse' } } } };
    await applyRules(t.system, environment.environmentId, rules, null);
    await drop(join(folder, 'users.csv'), 'user_id,plan\nu1,pro\nu2,gold\n');
    const [file] = await concluded(folder, 'users.csv');
    expect(file?.receipt).toMatchObject({
      counts: { inserted: 1, rejected: 1 },
      rejects: { by_code: { breaks_rule: 1 } },
    });
  });

  test('a dropped file is loaded, and moved to done with its receipt and rejects', async () => {
    const { environment, folder } = await tenant();
    const content = 'user_id,plan\nu1,pro\n,free\nu2,"a\nb"\n';
    await drop(join(folder, 'users.csv'), content);
    const [file] = await concluded(folder, 'users.csv');
    expect(file).toMatchObject({ outcome: 'done', beside: ['.receipt.json', '.rejects.csv'] });
    const day = new Date().toISOString().slice(0, 10);
    expect(file?.path).toBe(join(folder, 'done', day, 'users.csv'));
    expect(await readFile(file?.path ?? '', 'utf8')).toBe(content);
    expect(file?.receipt).toMatchObject({
      file: 'users.csv',
      environment: environment.name,
      outcome: 'done',
      reasons: [],
      sources: [{ bytes: Buffer.byteLength(content), sha256: sha256(content) }],
      status: 'completed',
      duplicate_of: null,
      counts: { read: 3, inserted: 2, updated: 0, unchanged: 0, superseded: 0, rejected: 1 },
      rejects: { count: 1, by_code: { missing_id: 1 }, file: 'users.csv.rejects.csv' },
    });
    const load = await t.system.db
      .selectFrom('loads')
      .selectAll()
      .where('job_id', '=', file?.receipt.job_id ?? '')
      .executeTakeFirstOrThrow();
    expect(load).toMatchObject({
      type: 'import',
      filename: 'users.csv',
      environment_id: environment.environmentId,
    });
    const [detail] = await readLoads(t.system, environment.environmentId, [load.job_id]);
    if (detail === undefined) throw new Error('the load is missing');
    const result = await readLoadResult(t.system.db, environment.environmentId, detail);
    const { rejects: found, ...run } = checkRun(renderLoadRun(detail, result, t.system.baseUrl));
    expect(checkRun(file?.receipt)).toEqual({
      ...run,
      rejects: { ...found, file: 'users.csv.rejects.csv' },
    });
    expect(run.origin).toEqual({ kind: 'inbox', name: 'users.csv' });
    const rejects = await readFile(`${file?.path}.rejects.csv`, 'utf8');
    expect(rejects.split('\n').slice(0, 2)).toEqual([
      expect.stringMatching(/^user_id,plan,sluice_job,sluice_row,/),
      expect.stringMatching(/^,free,[0-9a-f-]{36},2,3,missing_id,/),
    ]);
    expect(await readProfiles(t.system, environment.environmentId)).toMatchObject({
      users: { u1: { metadata: { plan: 'pro' } }, u2: { metadata: { plan: 'a\nb' } } },
    });
  });

  test('a dropped file may have any format, and its folder or mapping names its kind', async () => {
    const { environment, folder } = await tenant();
    await drop(
      join(folder, 'companies', 'mapping.yaml'),
      'map:\n  "Customer, ID": company_id\nmax_errors: 0%\n',
    );
    await drop(join(folder, 'users', 'a.ndjson'), '{"user_id":"u1","company_id":"c1"}\n');
    await drop(join(folder, 'users', 'b.JSONL.GZ'), gzipSync('{"user_id":"u2"}\n'));
    await drop(join(folder, 'companies', 'c.csv'), '"Customer, ID",user_id\nc1,7\n');
    await drop(join(folder, 'd.json'), '[{"company_id":"c2"}]');
    const sheet = { name: 'S', rows: textRow(1, 'user_id', 'n') + textRow(2, 'u3', '3') };
    await drop(join(folder, 'users', 'e.xlsx'), workbookFile({ sheets: [sheet] }));
    await drop(join(folder, 'users', 'f.zip'), zipFile([{ name: 'f.csv', data: 'user_id\nu4\n' }]));
    const packedNames = ['users/b.JSONL.GZ', 'users/e.xlsx', 'users/f.zip'];
    const names = ['users/a.ndjson', 'companies/c.csv', 'd.json', ...packedNames];
    for (const name of names) {
      expect((await concluded(folder, name))[0]?.receipt).toMatchObject({
        outcome: 'done',
        counts: { read: 1, rejected: 0 },
      });
    }
    const { users, companies } = await readProfiles(t.system, environment.environmentId);
    expect(Object.keys(users)).toEqual(['u1', 'u2', 'u3', 'u4']);
    expect(companies).toEqual({ c1: { metadata: { user_id: '7' } }, c2: { metadata: {} } });
  });

  // proves: inbox-once
  test('a file that cannot be loaded, or with too many rejects, goes to failed', async () => {
    const { folder } = await tenant();
    await drop(join(folder, 'companies', 'mapping.yaml'), 'max_errors: 1\n');
    const files = {
      'empty.csv': ['', 'empty_file'],
      'bare.csv': ['user_id,plan\n', 'empty_file'],
      'strange.csv': ['id,plan\n1,pro\n', 'unrecognised_columns'],
      'sheet.csv': ['PK\x03\x04 not a CSV', 'unsupported_format'],
      'companies/bad.csv': ['company_id,a\n,1\n,2\nc,3\n', 'too_many_rejects'],
    } as const;
    for (const [name, [content]] of Object.entries(files)) await drop(join(folder, name), content);
    for (const [name, [content, code]] of Object.entries(files)) {
      const [file] = await concluded(folder, name);
      expect(file?.outcome, name).toBe('failed');
      expect(file?.receipt.reasons, name).toMatchObject([
        { error_code: code, message: expect.stringMatching(/\w/) },
      ]);
      expect(checkRun(file?.receipt), name).toMatchObject({
        status: 'failed',
        sources: [{ sha256: sha256(content) }],
        failure: { error_code: code },
      });
      expect(await readFile(file?.path ?? '', 'utf8'), name).toBe(content);
    }
    const [strange] = await concluded(folder, 'strange.csv');
    expect(strange?.receipt.reasons[0]?.message).toContain(
      'in mapping.yaml with `map: { "Their Header": user_id }`',
    );
    const [bad] = await concluded(folder, 'companies/bad.csv');
    expect(bad?.beside).toContain('.rejects.csv');
  });

  test('a refused file notifies the subscribers of failed loads, by webhook and mail', async () => {
    const receiver = await startWebhookReceiver();
    cleanUpAfter('test', () => receiver.stop());
    const { environment, folder } = await tenant();
    const policy = readDeliveryPolicy(t.config);
    const subscribe = (channel: 'webhook' | 'email', target: string, outcome: Outcome) =>
      addSubscription(
        t.system,
        environment.environmentId,
        { channel, target, outcomes: [outcome], kinds: ['load'] },
        policy,
      );
    await subscribe('webhook', receiver.url, 'failed');
    await subscribe('email', 'ops@example.com', 'failed');
    await subscribe('email', 'other@example.com', 'completed');
    await drop(join(folder, 'users', 'strange.csv'), 'id,plan\n1,pro\n');
    const [file] = await concluded(folder, 'users/strange.csv');
    await waitFor('the webhook', () => receiver.received.length > 0);
    const { type, data } = JSON.parse(receiver.received[0]?.body.toString() ?? '');
    expect(type).toBe('file.refused');
    expect(checkRun(data).sources).toMatchObject([{ bytes: 14, sha256: sha256('id,plan\n1,pro\n') }]);
    expect(data).toMatchObject({
      file_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      file: 'users/strange.csv',
      reasons: file?.receipt.reasons,
    });
    const mails = await waitFor('the mail', () => readOutbox(t.config.outboxDir));
    expect(mails).toHaveLength(1);
    expect(mails[0]).toMatch(/^To: ops@example.com\r$/m);
    expect(mails[0]).toMatch(/^File: users\/strange\.csv\r$/m);
    expect(mails[0]).toContain('[unrecognised_columns]');
    const warnings = log.lines.filter(({ msg }) => msg === 'inbox: file refused');
    expect(warnings.find(({ file }) => file === 'users/strange.csv')).toMatchObject({ level: 40 });
  });

  // proves: source-options
  test('a file is read by its mapping, and its receipt has the options and reading', async () => {
    const { environment, folder } = await tenant();
    const mapping = 'header: none\ndelimiter: pipe\nmap: { "1": user_id, "2": plan }\n';
    await drop(join(folder, 'mapping.yaml'), mapping);
    await drop(join(folder, 'a.csv'), 'a,b|pro\n');
    const [file] = await concluded(folder, 'a.csv');
    expect(file?.receipt).toMatchObject({
      outcome: 'done',
      options: { header: 'none', delimiter: '|' },
      read_as: { format: 'csv', encoding: 'utf-8', csv: { delimiter: '|', header_line: null } },
    });
    expect((await readProfiles(t.system, environment.environmentId)).users).toMatchObject({
      'a,b': { metadata: { plan: 'pro' } },
    });
    await drop(join(folder, 'users', 'mapping.yaml'), 'sheet: Customers\n');
    await drop(join(folder, 'users', 'b.csv'), 'user_id\nb\n');
    const [refusedFile] = await concluded(folder, 'users/b.csv');
    expect(refusedFile?.receipt).toMatchObject({
      reasons: [{ error_code: 'invalid_field', details: 'sheet' }],
      read_as: null,
    });
  });

  test('a file is a duplicate if its bytes were loaded or are being loaded', async () => {
    const { environment, folder } = await tenant();
    await drop(join(folder, 'users', 'mapping.yaml'), 'if_duplicate: load\n');
    const content = users('u1', 'u2');
    await drop(join(folder, 'a.csv'), content);
    await drop(join(folder, 'twin.csv'), content);
    const [firstFile] = await concluded(folder, 'a.csv');
    await drop(join(folder, 'later.csv'), content);
    const job = firstFile?.receipt.job_id;
    for (const name of ['twin.csv', 'later.csv']) {
      const [file] = await concluded(folder, name);
      expect(file, name).toMatchObject({
        outcome: 'done',
        beside: ['.receipt.json'],
        receipt: {
          job_id: null,
          status: 'completed',
          duplicate_of: job,
          counts: { read: 0 },
          failure: null,
          reasons: [{ error_code: 'duplicate_file' }],
        },
      });
      checkRun(file?.receipt);
    }
    await drop(join(folder, 'users', 'again.csv'), content);
    const [loadedTwice] = await concluded(folder, 'users/again.csv');
    expect(loadedTwice?.receipt).toMatchObject({ duplicate_of: job, counts: { unchanged: 2 }, reasons: [] });
    expect(await loadsOf(environment)).toHaveLength(2);
  });

  test('a file may have any name, and never overwrites another of the same name', async () => {
    const { folder } = await tenant();
    const names = ['-rf.csv', 'ünï 😀.csv', 'two\nlines.csv', '; drop table.csv', `${'é'.repeat(125)}.csv`];
    for (const [index, name] of names.entries()) await drop(join(folder, name), users(`n${index}`));
    for (const [index, name] of names.entries()) {
      const [file] = await concluded(folder, name);
      expect(file?.outcome, name).toBe('done');
      expect(await readFile(file?.path ?? '', 'utf8'), name).toBe(users(`n${index}`));
    }
    for (const round of ['one', 'two']) {
      await drop(join(folder, 'same.csv'), users(round));
      await concluded(folder, 'same.csv', round === 'one' ? 1 : 2);
    }
    const sameNames = await concluded(folder, 'same.csv', 2);
    const contents = await Promise.all(sameNames.map(({ path }) => readFile(path, 'utf8')));
    expect(contents.sort()).toEqual([users('one'), users('two')]);
  });
});

describe('a file that is not taken', () => {
  test('a growing file is not taken, and does not delay an earlier one', async () => {
    const { folder } = await tenant();
    const growing = join(folder, 'growing.csv');
    await writeFile(growing, 'user_id,plan\n');
    let rows = 0;
    const grow = () => appendFile(growing, `g${++rows},pro\n`);
    await drop(join(folder, 'users', 'x.csv'), users('x'));
    // The growing file is newer than x.csv, so x.csv must not wait for the growing file.
    await utimes(join(folder, 'users', 'x.csv'), 1, 1);
    await waitFor('the other file', async () => {
      await grow();
      return (await readConcluded(folder)).length === 1;
    });
    expect(await list(folder)).toContain('growing.csv');
    const [file] = await concluded(folder, 'growing.csv');
    expect(file?.receipt.counts).toMatchObject({ read: rows, inserted: rows });
  });

  test('links, hidden, unfinished and unknown files and folders are left alone', async () => {
    const { folder } = await tenant();
    const outside = join(inbox, '..', `sluice-secret-${randomBytes(4).toString('hex')}.csv`);
    await writeFile(outside, users('secret'));
    await symlink(outside, join(folder, 'link.csv'));
    await link(outside, join(folder, 'hard.csv'));
    await rm(join(folder, 'users'), { recursive: true });
    await symlink(join(inbox, '..'), join(folder, 'users'));
    // Makes `companies` a file instead of a folder. If the folder is missing, `cp a.csv
    // inbox/default/companies` creates such a file.
    await rm(join(folder, 'companies'), { recursive: true });
    await writeFile(join(folder, 'companies'), users('left'));
    await mkdir(join(folder, 'folder.csv'));
    expect(spawnSync('mkfifo', [join(folder, 'pipe.csv')]).status).toBe(0);
    const server = createServer().listen(join(folder, 'socket.csv'));
    const leftNames =
      '.hidden.csv a.csv.part a.csv.tmp a.csv.filepart a.csv.crdownload a.csv~ ~$a.xlsx notes.txt'.split(' ');
    for (const name of leftNames) await writeFile(join(folder, name), users('left'));
    await drop(join(inbox, 'nobody', 'a.csv'), users('left'));
    // Files are taken in order. Once the last file is concluded, the watcher has also seen all
    // other files.
    await drop(join(folder, 'last.csv'), users('last'));
    await concluded(folder, 'last.csv');
    await drop(join(folder, 'last.csv'), users('last again'));
    await concluded(folder, 'last.csv', 2);
    server.close();
    for (const name of 'link.csv hard.csv folder.csv pipe.csv socket.csv notes.txt users companies'.split(
      ' ',
    ))
      expect(messagesOf(join(folder, name)), name).toEqual([expect.stringMatching(/is left alone: /)]);
    expect(messagesOf(join(inbox, 'nobody'))).toEqual([expect.stringContaining('sluice env create')]);
    for (const name of leftNames.slice(0, -1)) expect(messagesOf(join(folder, name)), name).toEqual([]);
    const remaining = await list(folder);
    expect(remaining).toEqual(
      expect.arrayContaining([...leftNames, 'link.csv', 'hard.csv', 'folder.csv', 'pipe.csv']),
    );
    expect(await list(join(inbox, 'nobody'))).toEqual(['a.csv']);
    expect(await readFile(outside, 'utf8')).toBe(users('secret'));
    await rm(outside);
  });

  test('a file waits while its mapping is wrong, which is reported with its line', async () => {
    const { folder } = await tenant();
    const mapping = join(folder, 'users', 'mapping.yaml');
    await drop(mapping, 'map:\n  Kunde: user_id\nentity: companies\nmax_errors: many\ncolour: red\n');
    await drop(join(folder, 'users', 'a.csv'), 'Kunde,plan\nu1,pro\n');
    const errors = await waitFor('the errors', async () => readFile(`${mapping}.error`, 'utf8'));
    expect(errors.split('\n')).toEqual([
      'mapping.yaml:3:1 entity is users in the folder users; leave it out',
      'mapping.yaml:4:13 max_errors must be a number such as 100, or a share such as 5%, not "many"',
      expect.stringMatching(
        /^mapping\.yaml:5:1 colour is unknown; a mapping has entity, map, preset, options_of, max_errors, /,
      ),
      '',
    ]);
    expect(messagesOf(mapping)).toEqual([expect.stringContaining('mapping.yaml:4:13')]);
    await drop(join(folder, 'b.csv'), users('b'));
    await concluded(folder, 'b.csv');
    expect(await list(join(folder, 'users'))).toContain('a.csv');
    await drop(mapping, 'map:\n  Kunde: user_id\nmax_errors: 5%\n');
    expect((await concluded(folder, 'users/a.csv'))[0]?.receipt).toMatchObject({
      outcome: 'done',
      options: { map: { Kunde: 'user_id' }, entity: 'users' },
    });
    expect(await list(join(folder, 'users'))).not.toContain('mapping.yaml.error');
  });
});

/** Opens an inbox without a watcher. The test runs each step itself. */
async function openByHand() {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-inbox-'));
  cleanUpAfter('test', () => rm(directory, { recursive: true, force: true }));
  const { environment } = await t.addEnvironment(`tenant-${++environments}`);
  const system = t.openAnother();
  cleanUpAfter('test', () => system.close());
  const inbox = await createInboxOpener(directory)();
  const folder = join(inbox.path, environment.name);
  await mkdir(folder);
  /** Returns the files in the folder that are ready but not yet taken. */
  const see = async (): Promise<ReadyFile[]> => {
    const { at, keys } = await readOpenInboxFiles(system.db, inbox.id, environment.environmentId);
    const { files } = await lookInto(folder, '');
    return files
      .filter((file) => !keys.has(rowKey(file)))
      .map((file) => ({ ...file, seenAt: at, options: optionsWithoutMapping(system.optionTable, '') }));
  };
  const take = (file: ReadyFile, as: System = system) => takeIn(as, inbox, environment, file, never);
  const conclude = () => concludeFiles(system, inbox, new Backoff(), never);
  return { system, inbox, environment, folder, see, take, conclude };
}

type ByHand = Awaited<ReturnType<typeof openByHand>>;

async function concludeOne(hand: ByHand): Promise<Concluded> {
  await waitFor('a file to be concluded', async () => {
    await hand.conclude();
    return (await readConcluded(hand.folder)).length > 0;
  });
  return only(readConcluded(hand.folder));
}

async function only<T>(items: readonly T[] | Promise<readonly T[]>): Promise<T> {
  const [item, ...surplus] = await items;
  if (item === undefined || surplus.length > 0)
    throw new Error(`one was expected, not ${surplus.length + (item === undefined ? 0 : 1)}`);
  return item;
}

function loadsOf({ environmentId }: Environment) {
  return t.system.db
    .selectFrom('loads')
    .select(['job_id', 'filename', 'status'])
    .where('environment_id', '=', environmentId)
    .orderBy('lane_position')
    .execute();
}

const countLoads = async ({ environment }: ByHand) => (await loadsOf(environment)).length;

async function loadsEnded({ environment }: ByHand): Promise<void> {
  await waitFor('the loads to end', async () =>
    (await loadsOf(environment)).every(({ status }) => (endedStatuses as readonly string[]).includes(status)),
  );
}

/** Creates files whose order by time differs from their order by name. */
async function dropInOrder(folder: string, count: number): Promise<void> {
  const start = Date.now() / 1000 - 3_600;
  const names = Array.from({ length: count }, (_, at) => `${(at * 31) % 1_000}-${at}.csv`);
  for (const [at, name] of names.entries()) {
    const draft = join(folder, `.${name}`);
    await writeFile(draft, `user_id,last,own_${at % 10}\nu1,${at},${at}\nonly-${at},x,\n`);
    await utimes(draft, start + at, start + at);
  }
  for (const name of names) await rename(join(folder, `.${name}`), join(folder, name));
}

describe('two processes, or a dead one', () => {
  test('two watches without their lock still load each file once', async () => {
    const hand = await openByHand();
    const { system, inbox: opened, folder } = hand;
    const count = 6;
    await dropInOrder(folder, count);
    const otherSystem = t.openAnother();
    const watches = [system, otherSystem].map((watching) => new InboxWatch(watching, opened));
    const look = async (): Promise<boolean> => {
      await Promise.all(watches.map((watch) => watch.look()));
      await Promise.all(watches.map((watch) => watch.conclude()));
      return (await readConcluded(folder)).length >= count;
    };
    // One scan does not take all files, so the folder has to be scanned repeatedly.
    await waitFor('all files to be concluded', look, { everyMs: 20 });
    await Promise.all(watches.map((watch) => watch.stop('the test ends')));
    await otherSystem.close();
    expect(await countLoads(hand)).toBe(count);
  });

  // proves: inbox-once
  test('a file that is taken twice, even long after it was seen, becomes one load', async () => {
    const hand = await openByHand();
    const { system, folder } = hand;
    await drop(join(folder, 'a.csv'), users('a'));
    const file = await only(hand.see());
    const storedBefore = new Set(await t.storedFiles());
    const newlyStored = async () => (await t.storedFiles()).filter((path) => !storedBefore.has(path));
    // The first attempt stores the file but fails before it accepts the load.
    const dying: System = {
      ...system,
      pool: { ...system.pool, connect: () => Promise.reject(new Error('dies here')) } as never,
    };
    const remove = () => Promise.reject(new Error('dies here'));
    await expect(hand.take(file, { ...dying, files: { ...system.files, remove } })).rejects.toThrow(
      'dies here',
    );
    expect(await newlyStored()).toHaveLength(1);
    await Promise.all([1, 2, 3].map(() => hand.take(file).catch(() => undefined)));
    await expect(hand.take(file)).rejects.toThrow('another process has taken the file');
    expect(await hand.see()).toEqual([]);
    const { path } = await concludeOne(hand);
    // Simulates a paused process that had read the file before and now continues.
    await rename(path, join(folder, 'a.csv'));
    await expect(hand.take(file)).rejects.toThrow('another process has taken the file');
    expect(await countLoads(hand)).toBe(1);
    await sql`update received_files set received_at = now() - interval '1 day'`.execute(system.db);
    await removeAbandoned(system);
    expect(await newlyStored()).toHaveLength(1);
    await hand.take(await only(hand.see()));
    expect(await hand.see()).toEqual([]);
  });

  test('an interrupted conclusion is repeated under the same name', async () => {
    const hand = await openByHand();
    const { system, folder } = hand;
    await drop(join(folder, 'a.csv'), users('a'));
    await hand.take(await only(hand.see()));
    const { path } = await concludeOne(hand);
    const reopen = () =>
      sql`update inbox_files set state = 'loading', concluded_at = null
          where environment_id = ${hand.environment.environmentId}`.execute(system.db);
    const state = async (): Promise<unknown> => ({
      files: await list(join(path, '..')),
      rows: await system.db
        .selectFrom('inbox_files')
        .select(['state', 'placed_as'])
        .where('environment_id', '=', hand.environment.environmentId)
        .execute(),
    });
    const expectedState = await state();
    // Simulates a process that died before it updated the ledger.
    await reopen();
    await hand.conclude();
    expect(await state()).toEqual(expectedState);
    // Simulates a process that died before it moved the file.
    await reopen();
    await rename(path, join(folder, 'a.csv'));
    await hand.conclude();
    expect(await state()).toEqual(expectedState);
  });

  // proves: inbox-stuck
  test('files that cannot be moved delay no other file in any environment', async () => {
    const hand = await openByHand();
    const { system, inbox: opened, environment, folder } = hand;
    const stuck = Array.from({ length: 101 }, (_, at) => ({
      fileId: uuidv7(),
      inboxId: opened.id,
      environmentId: environment.environmentId,
      folder: '' as const,
      name: `${at}.csv`,
      inode: BigInt(at),
      size: 0n,
      modifiedNs: 0n,
      options: optionsWithoutMapping(system.optionTable, ''),
      seenAt: 'now',
    }));
    for (const file of stuck) {
      await insertInboxFile(system.db, file, { state: 'refused', sha256: null, reasons: [] });
    }
    await sql`update inbox_files set outcome = 'failed', placed_as = '2026-01-01/' || name
        where inbox_id = ${opened.id}`.execute(system.db);
    await drop(join(folder, 'failed', '2026-01-01'), 'a file where a folder should be');
    const { environment: otherEnvironment } = await t.addEnvironment(`tenant-${++environments}`);
    await drop(join(opened.path, otherEnvironment.name, 'empty.csv'), '');
    await drop(join(folder, 'empty.csv'), '');
    const watch = new InboxWatch(system, opened);
    for (const { name } of [environment, otherEnvironment]) {
      await waitFor('the empty file', async () => {
        await watch.look();
        await watch.conclude();
        return (await readConcluded(join(opened.path, name))).length > 0;
      });
      const { receipt } = await only(readConcluded(join(opened.path, name)));
      expect(receipt).toMatchObject({ file: 'empty.csv', environment: name });
    }
    await watch.stop('the test ends');
  });

  // proves: inbox-stuck
  test('a failed file that is taken again is found, even after an interruption', async () => {
    const hand = await openByHand();
    const { system, inbox: opened, environment, folder } = hand;
    await drop(join(folder, 'a.csv'), '');
    const { inode, ...file } = await only(hand.see());
    await hand.take({ inode, ...file });
    const { path: failedPath } = await concludeOne(hand);
    const { fileId } = await system.db
      .selectFrom('inbox_files')
      .select('file_id as fileId')
      .where('environment_id', '=', environment.environmentId)
      .executeTakeFirstOrThrow();
    const takeAgain = () => takeInAgain(system, opened.path, environment.environmentId, fileId);
    await drop(join(folder, 'a.csv'), users('another'));
    const folderName = basename(folder);
    await expect(takeAgain()).rejects.toThrow(`Another file of that name is in the inbox (${folderName})`);
    await rename(join(folder, 'failed'), join(opened.path, '.elsewhere'));
    await symlink(join(opened.path, '.elsewhere'), join(folder, 'failed'));
    await expect(takeAgain()).rejects.toThrow(`A folder is missing or is a link (${folderName}/failed)`);
    await rm(join(folder, 'failed'));
    await rename(join(opened.path, '.elsewhere'), join(folder, 'failed'));
    await rm(join(folder, 'a.csv'));
    await link(failedPath, join(folder, 'a.csv'));
    expect(await hand.see()).toEqual([]);
    await takeAgain();
    expect(await list(join(failedPath, '..'))).toEqual(['a.csv.receipt.json']);
    expect(await hand.see()).toMatchObject([{ name: 'a.csv', inode }]);
  });

  test('a file that grows before it is taken waits, and is loaded again if it grows later', async () => {
    const hand = await openByHand();
    const { folder } = hand;
    await drop(join(folder, 'a.csv'), users('a'));
    const seenEarly = await only(hand.see());
    await appendFile(join(folder, 'a.csv'), 'a2,pro\n');
    await hand.take(seenEarly);
    expect(await countLoads(hand)).toBe(0);
    await hand.take(await only(hand.see()));
    await appendFile(join(folder, 'a.csv'), 'a3,pro\n');
    await hand.take(await only(hand.see()));
    expect((await concludeOne(hand)).receipt.counts).toMatchObject({ read: 3 });
    expect(await countLoads(hand)).toBe(2);
  });

  // proves: inbox-once
  test('a file that replaces one under conclusion is moved back and loaded too', async () => {
    const hand = await openByHand();
    const { system, folder } = hand;
    const droppedPath = join(folder, 'a.csv');
    await drop(droppedPath, `${users('a')},free\n`);
    await hand.take(await only(hand.see()));
    await loadsEnded(hand);
    const place = (): Promise<string | undefined> =>
      system.db
        .selectFrom('inbox_files')
        .select('placed_as')
        .where('environment_id', '=', hand.environment.environmentId)
        .executeTakeFirst()
        .then((row) => (row?.placed_as == null ? undefined : join(folder, 'done', row.placed_as)));
    // The receipt contains the number of rejects. This lock delays counting them.
    const concluding = await system.db.transaction().execute(async (transaction) => {
      await sql`lock table load_rejects in access exclusive mode`.execute(transaction);
      const ending = hand.conclude();
      await waitFor('a place', place);
      await waitFor('the receipt to wait', async () => {
        const { rows } = await sql`select 1 from pg_locks join pg_stat_activity using (pid)
            where not granted and relation = 'load_rejects'::regclass and datname = current_database()`.execute(
          t.system.db,
        );
        return rows.length > 0;
      });
      await drop(droppedPath, users('b', 'c'));
      return { ending };
    });
    await concluding.ending;
    const placedPath = (await place()) ?? '';
    const laterFile = await only(hand.see());
    expect(await readFile(droppedPath, 'utf8')).toBe(users('b', 'c'));
    expect(await list(join(placedPath, '..'))).toEqual(['a.csv.receipt.json', 'a.csv.rejects.csv']);
    // Simulates a process that died after it moved the file away, and before it moved the file
    // back.
    await sql`update inbox_files set state = 'loading', concluded_at = null
        where environment_id = ${hand.environment.environmentId}`.execute(system.db);
    await rename(droppedPath, placedPath);
    await hand.conclude();
    expect(await hand.see()).toMatchObject([{ inode: laterFile.inode }]);
    await hand.take(await only(hand.see()));
    expect((await concludeOne(hand)).receipt.counts).toMatchObject({ read: 2, inserted: 2 });
  });

  test('a restored older database leaves files in done, and loads files of the inbox', async () => {
    const hand = await openByHand();
    const { system, folder } = hand;
    for (const name of ['a', 'b']) await drop(join(folder, `${name}.csv`), users(name));
    const [a, b] = await hand.see();
    if (a === undefined || b === undefined) throw new Error('both are there');
    await hand.take(a);
    const { path } = await concludeOne(hand);
    const files = await list(join(path, '..'));
    await hand.take(b);
    // When the backup was made, file a was being loaded and file b had not been dropped.
    await sql`delete from inbox_files where name = ${b.name} and environment_id = ${hand.environment.environmentId}`.execute(
      system.db,
    );
    await sql`update inbox_files set state = 'loading', concluded_at = null, outcome = null, placed_as = null
        where environment_id = ${hand.environment.environmentId}`.execute(system.db);
    expect(await hand.see()).toMatchObject([{ name: b.name, inode: b.inode }]);
    await hand.conclude();
    expect(await list(join(path, '..'))).toEqual(files);
    expect(await hand.see()).toHaveLength(1);
    await hand.take(await only(hand.see()));
    await waitFor('both to be concluded', async () => {
      await hand.conclude();
      return (await readConcluded(folder)).length === 2;
    });
  });

  // proves: inbox-once, inbox-stuck
  test.skipIf(process.getuid?.() !== 0)(
    'a file that cannot be moved is loaded once, and closed folders delay no other folders',
    async () => {
      const hand = await openByHand();
      const { system, inbox: opened, folder } = hand;
      const asNobody = async (work: () => Promise<void>): Promise<void> => {
        process.seteuid?.(65_534);
        try {
          await work();
        } finally {
          process.seteuid?.(0);
        }
      };
      await chmod(opened.path, 0o755);
      await drop(join(folder, 'a.csv'), users('a'));
      await hand.take(await only(hand.see()));
      await loadsEnded(hand);
      await asNobody(hand.conclude);
      expect(await readConcluded(folder)).toEqual([]);
      expect(await hand.see()).toEqual([]);
      await mkdir(join(folder, 'users'), { mode: 0o700 });
      await mkdir(join(folder, 'companies'));
      await writeFile(join(folder, 'companies', 'mapping.yaml'), 'colour: red\n');
      await writeFile(join(folder, 'b.csv'), users('b'), { mode: 0o600 });
      const watch = new InboxWatch(system, opened);
      await asNobody(async () => {
        await waitFor('the other file to be taken', async () => {
          await watch.look();
          await watch.ended();
          return (await hand.see()).length === 0;
        });
      });
      await watch.stop('the test ends');
      await waitFor('both to be concluded', async () => {
        await hand.conclude();
        return (await readConcluded(folder)).length === 2;
      });
      expect(
        (await readConcluded(folder)).map(({ receipt }) => [receipt.file, receipt.reasons]),
      ).toMatchObject([
        ['a.csv', []],
        ['b.csv', [{ error_code: 'unreadable_file' }]],
      ]);
      expect(await countLoads(hand)).toBe(1);
    },
  );

  test.each([
    ['a hard link', (at: string, other: string) => link(at, other)],
    ['a symbolic link', (at: string, other: string) => rename(at, other).then(() => symlink(other, at))],
  ])('%s that replaces a file before it is taken is not loaded', async (_what, change) => {
    const hand = await openByHand();
    await drop(join(hand.folder, 'a.csv'), users('a'));
    const file = await only(hand.see());
    await change(join(hand.folder, 'a.csv'), join(hand.inbox.path, 'other'));
    await hand.take(file);
    expect(await countLoads(hand)).toBe(0);
    expect(await hand.see()).toEqual([]);
  });

  test('a cancelled load sends its file and duplicates to failed, except later ones', async () => {
    const hand = await openByHand();
    const { folder, environment } = hand;
    const system = withoutQueue(hand.system) as System;
    await drop(join(folder, 'a.csv'), users('a'));
    await drop(join(folder, 'b.csv'), users('a'));
    // This lock prevents the lane from starting a load, so the load stays queued.
    await system.db.transaction().execute(async (transaction) => {
      await sql`select pg_advisory_xact_lock(${0x4c414e45}, ${environment.environmentId})`.execute(
        transaction,
      );
      for (const file of await hand.see()) await hand.take(file, system);
      const [load] = await loadsOf(environment);
      const cancelling = cancelLoad(system, environment.environmentId, load?.job_id ?? '');
      await waitFor('the load to be cancelled', async () => {
        await hand.conclude();
        return (await readConcluded(folder)).length === 2;
      });
      void cancelling.catch(() => undefined);
    });
    const files = await readConcluded(folder);
    expect(
      files.map(({ outcome, receipt }) => [outcome, receipt.status, receipt.reasons[0]?.error_code]),
    ).toEqual([
      ['failed', 'cancelled', 'cancelled'],
      ['failed', 'cancelled', 'cancelled'],
    ]);
    // Simulates files that could not be moved after their loads had ended. Dropping the same bytes
    // again must start a new load.
    await sql`update inbox_files set state = 'loading', concluded_at = null
        where environment_id = ${environment.environmentId}`.execute(system.db);
    await drop(join(folder, 'c.csv'), users('a'));
    await hand.take(await only(hand.see()));
    expect(await countLoads(hand)).toBe(2);
  });
});

test('files wait for a lost store and lost connections, and are then loaded', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-inbox-'));
  const blocked = join(directory, 'store');
  await writeFile(blocked, 'a file where a folder should be');
  const log = collectLog();
  const settings = {
    INBOX_DIR: join(directory, 'inbox'),
    INBOX_STABLE_MS: '100',
    STORAGE_URL: join(blocked, 'files'),
  };
  const system = await openTestSystem({ settings, worker: true, log: log.log });
  cleanUpAfter('test', async () => {
    await system.close();
    await rm(directory, { recursive: true, force: true });
  });
  const folder = join(directory, 'inbox', 'default');
  const has = (text: string) => log.lines.filter(({ msg }) => String(msg).includes(text)).length;
  await waitFor('the folder', () => stat(folder));
  const names = Array.from({ length: 6 }, (_, index) => `${index}.csv`);
  for (const name of names) await drop(join(folder, name), users('u', name));
  await waitFor('the store to be missed', () => has('cannot be taken in now') > 0);
  await system.system.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database() and application_name like 'sluice%'",
  );
  await waitFor('another lock', () => has('this process watches it') > 1);
  expect(await readConcluded(folder)).toEqual([]);
  await rm(blocked);
  for (const name of names) expect((await concluded(folder, name))[0]?.outcome).toBe('done');
});
