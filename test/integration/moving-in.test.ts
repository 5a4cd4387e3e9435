import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { type Preset, presets } from '../../src/domain/load.ts';
import { readEvents } from '../support/events.ts';
import { newEnvironment, readProfiles } from '../support/load-file.ts';
import { dealt, exporters, type Fact, makeFacts } from '../support/moving-world.ts';
import { systemOfFile } from '../support/system.ts';
import { loadFile } from '../support/undo.ts';

const t = await systemOfFile();

/** A twenty-fifth of the whole set, unless SLUICE_LARGE says otherwise. */
const part = process.env['SLUICE_LARGE'] === '1' ? 1 : 0.04;
const facts = makeFacts({ events: 31_636 * part, users: 3000 * part, companies: 1500 * part });
const files = dealt(facts, 4);

type Content = Readonly<Record<'events' | 'users' | 'companies', ReadonlyMap<string, unknown>>>;

/** What comes last in the files wins. */
function expectedOf(preset: Preset, order: readonly Fact[]): Content {
  const events = new Map<string, unknown>();
  const users = new Map<string, { company: string | null; metadata: object }>();
  const companies = new Map<string, unknown>();
  const once = preset === 'posthog' ? { first: 'x' } : {};
  for (const fact of order) {
    const { kind, id, user, company, name, at, properties } = fact;
    const before = users.get(user) ?? { company: null, metadata: {} };
    const metadata = kind === 'user' ? { ...properties, ...once } : before.metadata;
    const isOfUser = kind !== 'company' || preset === 'segment';
    if (isOfUser) users.set(user, { company: company ?? before.company, metadata });
    if (kind === 'company') companies.set(String(company), properties);
    if (kind !== 'event') continue;
    const all = { ...exporters[preset].beside(fact), ...properties };
    events.set(id, { type: 'track', name, user, company, at, metadata: all });
  }
  return { events, users, companies };
}

async function contentOf(environmentId: number): Promise<Content> {
  const { users, companies } = await readProfiles(t.system, environmentId);
  const events = await readEvents(t.system, environmentId);
  return {
    events: new Map(events.map(({ id, source: _, ...event }) => [id, event])),
    users: new Map(Object.entries(users)),
    companies: new Map(Object.entries(companies).map(([id, { metadata }]) => [id, metadata])),
  };
}

/** Compares what differs alone: a diff of all would take minutes. */
function expectSame(found: Content, expected: Content): void {
  for (const table of ['events', 'users', 'companies'] as const) {
    const ids = new Set([...found[table].keys(), ...expected[table].keys()]);
    const differing = [...ids].filter(
      (id) => !isDeepStrictEqual(found[table].get(id), expected[table].get(id)),
    );
    const shown = (content: Content) => differing.slice(0, 3).map((id) => [id, content[table].get(id)]);
    expect([table, differing.length, shown(found)]).toEqual([table, 0, shown(expected)]);
  }
}

async function load(environmentId: number, preset: Preset, file: readonly Fact[]) {
  const { record, file: write, filename, companyFrom } = exporters[preset];
  const options = { preset, filename, chunkBytes: 1_000_000, source: companyFrom ? { companyFrom } : {} };
  const { status, tally } = await loadFile(t.system, environmentId, write(file.map(record)), options);
  expect([status, tally.read, tally.rejected]).toEqual(['completed', file.length, 0]);
  return tally;
}

describe('a whole move', () => {
  // proves: presets, latest-company
  test.each(presets)(
    'from %s brings each event once, and each user in the company that came last, in any order of files',
    async (preset) => {
      const [forward, backward] = [await newEnvironment(t.system), await newEnvironment(t.system)];
      const reversed = files.toReversed();
      for (const file of files) await load(forward, preset, file);
      expectSame(await contentOf(forward), expectedOf(preset, files.flat()));
      for (const file of reversed) await load(backward, preset, file);
      expectSame(await contentOf(backward), expectedOf(preset, reversed.flat()));
      for (const file of files) expect(await load(forward, preset, file)).toMatchObject({ inserted: 0 });
      expectSame(await contentOf(forward), expectedOf(preset, files.flat()));
    },
  );
});
