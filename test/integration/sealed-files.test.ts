import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pruneFiles } from '../../src/background-jobs/prune.ts';
import { TransientError } from '../../src/domain/errors.ts';
import { defaultLoadOptions } from '../../src/domain/load.ts';
import { isSealed, MissingFileError } from '../../src/files/file-store.ts';
import { sealingStore } from '../../src/files/sealed-files.ts';
import { openFileStore } from '../../src/files/storage.ts';
import { acceptLoad, receivingStore } from '../../src/load/accept-load.ts';
import { localLimits, receive } from '../../src/load/receive/receive.ts';
import { listRejects } from '../../src/load/rejects.ts';
import { PersonalData } from '../../src/personal/personal-data.ts';
import { type PersonalKeys, wrapKey } from '../../src/personal-keys.ts';
import { fileKeys } from '../../src/postgres/stores/file-keys.ts';
import { readRejectsPage } from '../../src/postgres/stores/rejects.ts';
import { applyRules } from '../../src/postgres/stores/rules.ts';
import { amendManually } from '../support/amend-file.ts';
import { clearIn, clearUser, personalKeys } from '../support/clear-values.ts';
import { acceptDeletion } from '../support/deletions.ts';
import { acceptFile, startManually } from '../support/load-file.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';

const rules = { users: { properties: { email: { personal: 'hash' } } } } as const;
const page = { rows: 10, bytes: 1e6, rawBytes: 1e6 };
const file = (name: string) => `user_id,email\n${name},${clearUser(name).email}\n${name}-2,x\n`;

// proves: sealed-files
describe.each(['folder', 's3'] as const)(
  'with files in a %s, in an environment whose rules call something personal',
  (storage) => {
    let t: TestSystem;
    let environmentId: number;
    beforeAll(async () => {
      t = await openTestSystem({ storage, settings: { PERSONAL_KEYS: personalKeys } });
      environmentId = t.environment.environmentId;
      await applyRules(t.system.db, environmentId, rules, null);
    });
    afterAll(() => t.close());

    /** The file of a load as the ledger names it, as it is stored, and whether there is a key for it. */
    async function look(jobId: string) {
      const { rows } = await sql<{ ref: never; hasKey: boolean }>`
      select l.file_ref as ref, k.file_ref is not null as "hasKey"
      from loads l left join file_keys k using (file_ref) where job_id = ${jobId}`.execute(t.system.db);
      return rows[0] ?? { ref: '' as never, hasKey: false };
    }
    const loaded = async (name: string): Promise<string> => {
      const load = await startManually(t.system, environmentId, file(name));
      for (let chunkNo = 0; chunkNo < load.chunkCount; chunkNo++) await load.chunk(chunkNo);
      expect(await load.finish()).toMatchObject({ status: 'completed' });
      return load.jobId;
    };
    const keys = async () => (await t.system.db.selectFrom('file_keys').select('file_ref').execute()).length;

    test('a received file is stored sealed, and its load reads it chunk by chunk', async () => {
      const load = await startManually(t.system, environmentId, file('a'), { chunkBytes: 1 });
      const { ref, hasKey } = await look(load.jobId);
      const raw = openFileStore(t.config.storage, 1e9);
      const stored = await raw.readRange(ref, 0, file('a').length);
      expect([isSealed(ref), hasKey, clearIn('the file', stored)]).toEqual([true, true, []]);
      for (let chunkNo = 0; chunkNo < load.chunkCount; chunkNo++) await load.chunk(chunkNo);
      expect(await load.finish()).toMatchObject({ status: 'completed', tally: { inserted: 2 } });
    });

    test('its key is destroyed with the file: by a deletion, when it expires, and if it becomes no load', async () => {
      await loaded('b');
      const deletion = await acceptDeletion(t.system, environmentId, 'users', ['a']);
      expect(await keys()).toBeGreaterThan(0);
      await deletion.run();
      expect(await keys()).toBe(0);

      const { ref } = await look(await loaded('c'));
      await pruneFiles(t.system, { fileDays: 0, jobDays: 365 });
      expect(await keys()).toBe(0);
      await expect(t.system.files.readRange(ref, 0, 1)).rejects.toThrow(MissingFileError);

      await expect(acceptFile(t.system, environmentId, 'a,b\n1,2\n')).rejects.toThrow();
      expect(await keys()).toBe(0);
    });

    test('refused records are sealed with their file, are shown and mended all the same, and are empty once it is gone', async () => {
      const bad = `user_id,email\n${'g'},${clearUser('g').email}\n,${clearUser('h').email}\nx,y,${clearUser('i').email}\n`;
      const load = await startManually(t.system, environmentId, bad);
      await load.chunk(0);
      await load.finish();
      const rows = await t.system.db
        .selectFrom('load_rejects')
        .selectAll()
        .where('load_id', '=', load.loadId)
        .execute();
      expect(
        rows.map(({ raw, message }) => clearIn('the row', Buffer.concat([raw, Buffer.from(message)]))),
      ).toEqual([[], []]);
      const shown = async () => {
        const asked = { limit: 10, after: 0 };
        const { rejects } = await listRejects(t.system, environmentId, load.jobId, asked, true);
        return rejects.map(({ raw }) => Buffer.from(raw).toString());
      };
      const lines = bad.split('\n').slice(2, 4);
      expect(await shown()).toEqual(lines);
      const { rejects } = await readRejectsPage(t.system, load.loadId, 0, { ...page, rawBytes: 5 });
      expect(rejects.map(({ raw, isCut }) => [Buffer.from(raw).toString(), isCut])).toEqual(
        lines.map((line) => [line.slice(0, 5), true]),
      );
      const mended = await amendManually(
        t.system,
        environmentId,
        load.jobId,
        `user_id,email,sluice_row\n,${clearUser('j').email},2\nk,k,3\n`,
      );
      await mended.chunk(0);
      await mended.finish();
      expect(await shown()).toEqual([expect.stringContaining(clearUser('j').email)]);
      const all = await t.system.db.selectFrom('load_rejects').select('raw').execute();
      expect(all.flatMap(({ raw }) => clearIn('a row', raw))).toEqual([]);
      await pruneFiles(t.system, { fileDays: 0, jobDays: 365 });
      expect(await shown()).toEqual(['']);
    });

    // proves: wrapped-file-keys
    test('a deletion is done though the key of refused records is lost, and nothing opens them afterwards', async () => {
      const bad = await startManually(
        t.system,
        environmentId,
        `user_id,email\n${clearUser('z').email}\nok,x\n`,
      );
      await bad.chunk(0);
      await bad.finish();
      const lost = new PersonalData(t.system.db, new Map([['other', Buffer.alloc(32, 9)]]));
      const same = new PersonalData(t.system.db, new Map([['test', Buffer.alloc(32, 9)]]));
      for (const personal of [lost, same])
        await expect(readRejectsPage({ db: t.system.db, personal }, bad.loadId, 0, page)).rejects.toThrow(
          TransientError,
        );
      const deletion = await acceptDeletion({ ...t.system, personal: lost }, environmentId, 'users', ['x']);
      expect(await deletion.run()).toMatchObject({ status: 'completed' });
      const { rejects } = await readRejectsPage(t.system, bad.loadId, 0, page);
      expect([await keys(), rejects.map(({ raw }) => raw.length)]).toEqual([0, [0]]);
    });

    test('a file that a killed process was writing has no key', async () => {
      const before = await keys();
      const writer = await receivingStore(t.system, environmentId).create();
      await writer.write(Buffer.from(file('e')));
      expect(await keys()).toBe(before);
      await writer.discard();
    });

    test('a file that had come in clear before the rules is not loaded by them', async () => {
      const { environmentId: late } = (await t.addEnvironment('late')).environment;
      const store = receivingStore(t.system, late);
      const { signal } = new AbortController();
      const received = await receive(
        (async function* () {
          yield Buffer.from(file('l'));
        })(),
        store,
        { filename: 'users.csv' },
        { ...localLimits(t.config), minBytesPerSecond: 0 },
        signal,
      );
      const document = { users: { properties: { email: { personal: 'drop' } } } } as const;
      await applyRules(t.system.db, late, document, null);
      const asked = {
        environmentId: late,
        type: 'import',
        filename: 'users.csv',
        idempotencyKey: null,
      } as const;
      const accepted = acceptLoad(t.system, { ...asked, received, options: defaultLoadOptions });
      await expect(accepted).rejects.toThrow(TransientError);
      await expect(t.system.files.readRange(received.ref, 0, 1)).rejects.toThrow(MissingFileError);
    });

    test('another environment stores its files as they are', async () => {
      const other = await t.addEnvironment('other');
      const jobId = await acceptFile(t.system, other.environment.environmentId, file('f'));
      const { ref, hasKey } = await look(jobId);
      expect([isSealed(ref), hasKey]).toEqual([false, false]);
    });

    // proves: wrapped-file-keys
    test('whoever has the database and the files reads none without the keys of the installation, which can be exchanged', async () => {
      const load = await startManually(t.system, environmentId, file('w'), { chunkBytes: 1 });
      const { ref } = await look(load.jobId);
      const raw = openFileStore(t.config.storage, 1e9);
      const { db } = t.system;
      const kept = db.selectFrom('file_keys').selectAll().where('file_ref', '=', ref);
      const { secret, key_id } = await kept.executeTakeFirstOrThrow();
      const [newest] = t.config.personalKeys.keys();
      expect(key_id).toBe(newest);
      const read = (keys: PersonalKeys) =>
        sealingStore(raw, fileKeys({ db, personal: { keys } })).readRange(ref, 0, file('w').length);
      for (const at of [0, 12, 28]) {
        const key = secret.subarray(at, at + 32);
        const guessing = { ...fileKeys({ db, personal: { keys: new Map() } }), find: async () => key };
        const bytes = await sealingStore(raw, guessing).readRange(ref, 0, file('w').length);
        expect(bytes.toString()).not.toContain('user_id');
      }
      const other = ['other', Buffer.alloc(32, 7)] as const;
      await expect(read(new Map())).rejects.toThrow(TransientError);
      await expect(read(new Map([other]))).rejects.toThrow(TransientError);
      const rotated = new Map([other, ...t.config.personalKeys]);
      expect(String(await read(rotated))).toBe(file('w'));
      expect(wrapKey(rotated, ref, secret.subarray(0, 32)).key_id).toBe('other');
      // The key of a file opens no other.
      const second = await startManually(t.system, environmentId, file('v'));
      const moved = { file_ref: (await look(second.jobId)).ref, secret, key_id };
      await db.updateTable('file_keys').set(moved).where('file_ref', '=', moved.file_ref).execute();
      await expect(t.system.files.readRange(moved.file_ref, 0, 9)).rejects.toThrow(/another of that id/);
    });
  },
);
