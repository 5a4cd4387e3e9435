import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import {
  type DatedProfileRow,
  type DatedUserRow,
  writeCompanies,
  writeDatedProfiles,
  writeUsers,
} from '../../src/postgres/stores/profiles.ts';
import { newEnvironment, readProfiles } from '../support/load-file.ts';
import { systemOfFile } from '../support/system.ts';

const t = await systemOfFile();

interface Said {
  readonly at?: string;
  readonly company?: string;
  readonly [property: string]: unknown;
}

/** One environment, written to by single records with and without times. */
async function profiles() {
  const environmentId = await newEnvironment(t.system);
  const row = (key: string, { at, company, ...properties }: Said): DatedUserRow => ({
    environmentId,
    key,
    at: at ?? null,
    companyId: company ?? null,
    properties: JSON.stringify(properties),
    removes: company === '' || Object.values(properties).includes(null),
  });
  const companyRow = (key: string, said: Said): DatedProfileRow => row(key, said);
  return {
    environmentId,
    identify: (key: string, said: Said) => writeUsers(t.system.pool, [row(key, said)], []),
    identifyCompany: (key: string, said: Said) => writeCompanies(t.system.pool, [row(key, said)]),
    dated: (...users: readonly [string, Said][]) =>
      writeDatedProfiles(
        t.system.pool,
        users.map(([key, said]) => row(key, said)),
        users.flatMap(([, { at, company }]) => (company ? [companyRow(company, at ? { at } : {})] : [])),
      ),
    datedCompany: (key: string, said: Said) => writeDatedProfiles(t.system.pool, [], [companyRow(key, said)]),
    user: async (key: string) => (await readProfiles(t.system, environmentId)).users[key],
    company: async (key: string) => (await readProfiles(t.system, environmentId)).companies[key],
    times: async (key: string) => {
      const { rows } = await sql<{ times: unknown }>`
        select times from users where environment_id = ${environmentId} and user_id = ${key}`.execute(
        t.system.db,
      );
      return rows[0]?.times;
    },
  };
}

const in2019 = '2019-01-01T00:00:00.000000Z';
const in2020 = '2020-01-01T00:00:00.000000Z';
const in2021 = '2021-01-01T00:00:00.000000Z';

describe('a record with a time', () => {
  // proves: older-never-wins
  test('loses against what a record without one set before, and adds what is not there', async () => {
    const p = await profiles();
    await p.identify('u', { plan: 'pro' });
    await p.dated(['u', { at: in2020, plan: 'free', city: 'Rome' }]);
    expect(await p.user('u')).toEqual({ metadata: { plan: 'pro', city: 'Rome' }, company: null });
  });

  // proves: older-never-wins
  test('wins property by property over older ones, in whatever order they come', async () => {
    const p = await profiles();
    await p.dated(['u', { at: in2020, plan: 'b', city: 'b' }]);
    await p.dated(['u', { at: in2021, plan: 'c' }]);
    await p.dated(['u', { at: in2019, plan: 'a', city: 'a', age: 'a' }]);
    expect(await p.user('u')).toEqual({ metadata: { plan: 'c', city: 'b', age: 'a' }, company: null });
  });

  test('wins over an equal time; of two in one batch the later one wins', async () => {
    const p = await profiles();
    await p.dated(['u', { at: in2020, plan: 'a' }], ['u', { at: in2020, plan: 'b' }]);
    expect(await p.user('u')).toEqual({ metadata: { plan: 'b' }, company: null });
    await p.dated(['u', { at: in2020, plan: 'c' }]);
    expect(await p.user('u')).toEqual({ metadata: { plan: 'c' }, company: null });
  });

  // proves: older-never-wins
  test('removes a property as of its time: an older record does not bring it back, a newer one does', async () => {
    const p = await profiles();
    await p.dated(['u', { at: in2019, plan: 'a' }]);
    for (const id of ['u', 'new']) {
      await p.dated([id, { at: in2020, plan: null, city: 'Rome' }]);
      await p.dated([id, { at: in2019, plan: 'old' }]);
      expect(await p.user(id), id).toEqual({ metadata: { city: 'Rome' }, company: null });
      await p.dated([id, { at: in2021, plan: 'b' }]);
      expect(await p.user(id), id).toEqual({ metadata: { city: 'Rome', plan: 'b' }, company: null });
    }
  });

  test('moves the user to its company as of its time, and creates companies that lose all the same', async () => {
    const p = await profiles();
    await p.dated(['u', { at: in2020, company: 'acme' }]);
    await p.dated(['u', { at: in2019, company: 'past' }]);
    expect(await p.user('u')).toEqual({ metadata: {}, company: 'acme' });
    expect(await p.company('past')).toEqual({ metadata: {} });
    await p.dated(['u', { at: in2021, company: '' }], ['u', { at: in2020, company: 'acme' }]);
    expect(await p.user('u')).toEqual({ metadata: {}, company: null });
  });

  test('that lies ahead counts as of now: it holds up nobody who comes later', async () => {
    const p = await profiles();
    const [soon, tomorrow] = [3_600_000, 86_400_000].map((ms) => new Date(Date.now() + ms).toISOString());
    await p.identify('u', { plan: 'a' });
    await p.dated(['u', { at: tomorrow, plan: 'b' }]);
    await p.dated(['u', { at: soon, plan: 'c' }]);
    expect(await p.user('u')).toEqual({ metadata: { plan: 'c' }, company: null });
    await p.identify('u', { plan: 'd' });
    expect(await p.user('u')).toEqual({ metadata: { plan: 'd' }, company: null });
  });
});

describe('a record without a time', () => {
  test('wins over all before it, and what it brings is newer than any record with an earlier time', async () => {
    const p = await profiles();
    await p.dated(['u', { at: in2020, plan: 'a', city: 'a', company: 'acme' }]);
    await p.identify('u', { plan: 'b', company: '' });
    await p.dated(['u', { at: in2021, plan: 'c', city: 'c', company: 'acme' }]);
    expect(await p.user('u')).toEqual({ metadata: { plan: 'b', city: 'c' }, company: null });
  });

  test('keeps no times, in whatever way it comes', async () => {
    const p = await profiles();
    await p.identify('u', { plan: 'a' });
    await p.identify('u', { plan: 'b', gone: null });
    await p.dated(['u', { plan: 'c' }], ['v', { plan: 'c', company: 'acme' }]);
    expect([await p.times('u'), await p.times('v')]).toEqual([null, null]);
  });
});
