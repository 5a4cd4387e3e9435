import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/base/package-root.ts';
import { type Definitions, kinds, type SurveyItem } from '../../src/domain/definitions.ts';
import type { Applied } from '../../src/lookups/apply-definitions.ts';
import { writeDefinitionsFile } from '../../src/lookups/definitions.ts';
import { createSegment } from '../../src/lookups/segments.ts';
import { readDefinitions, withoutIds } from '../../src/lookups/store.ts';
import { apply, itemsOf, noItems, segmentItem } from '../support/servers/definitions.ts';
import { systemOfFile, type Tenant } from '../support/servers/system.ts';

const t = await systemOfFile();

let serial = 0;
const newTenant = (): Promise<Tenant> => t.addEnvironment(`tenant-${++serial}`);
const stored = ({ environment }: Tenant) => readDefinitions(t.system.db, environment.environmentId, []);
const ids = (items: readonly { readonly id: number; readonly key: string }[]) =>
  Object.fromEntries(items.map(({ id, key }) => [key, id]));

const sample = itemsOf(readFileSync(join(packageRoot, 'docs', 'samples', 'definitions.yaml')));

/**
 * Counts the added, changed, removed and unchanged items of each kind. Omits kinds without items.
 */
function counts({ changes }: Applied): Record<string, readonly number[]> {
  const all = kinds.map((kind) => {
    const { added, changed, removed, unchanged } = changes[kind];
    return [kind, [added.length, changed.length, removed.length, unchanged]] as const;
  });
  return Object.fromEntries(all.filter(([, numbers]) => numbers.some((number) => number > 0)));
}

/** Returns every row with the id of the transaction that wrote it. */
async function versions(): Promise<unknown> {
  const tables = ['segments', 'surveys', 'survey_modules', 'titled_items', 'keyed_items'];
  const rows = tables.map((name) =>
    t.system.pool.query(`select xmin::text, ctid::text, * from sluice.${name}`),
  );
  return (await Promise.all(rows)).map((result) => result.rows);
}

describe('applying definitions', () => {
  test('an applied file replaces the definitions, and applied again it writes no row', async () => {
    const tenant = await newTenant();
    expect(counts(await apply(t, tenant, sample))).toEqual({
      segments: [8, 0, 0, 0],
      surveys: [2, 0, 0, 0],
      embeds: [3, 0, 0, 0],
      flows: [2, 0, 0, 0],
      banners: [2, 0, 0, 0],
      spotlights: [2, 0, 0, 0],
      resource_center_modules: [3, 0, 0, 0],
      checklists: [2, 0, 0, 0],
      features: [3, 0, 0, 0],
      event_retention: [2, 0, 0, 0],
    });
    expect(withoutIds(await stored(tenant))).toEqual(bySortedKeys(sample));
    const before = await versions();
    expect(counts(await apply(t, tenant, sample))).toMatchObject({ segments: [0, 0, 0, 8] });
    expect(await versions()).toEqual(before);
  });

  test('ids of definitions follow the order of the file, and stay while the key stays', async () => {
    const tenant = await newTenant();
    await apply(t, tenant, { segments: ['c', 'a', 'b'].map((key) => segmentItem(key)) });
    const { segments } = await stored(tenant);
    expect(segments.map(({ key }) => key)).toEqual(['c', 'a', 'b']);
    const changed = segmentItem('a', {
      title: 'Another',
      usage: 'u',
      category: 'x',
      is_hidden: true,
      status: 'draft',
      definition: { event: 'e' },
    });
    const applied = await apply(t, tenant, { segments: [segmentItem('b'), changed, segmentItem('c')] });
    expect(counts(applied)).toEqual({ segments: [0, 1, 0, 2] });
    expect(applied.changes.segments.changed).toMatchObject([
      {
        before: { title: 'Segment a' },
        item: changed,
        fields: ['title', 'usage', 'category', 'is_hidden', 'status', 'definition'],
      },
    ]);
    const after = (await stored(tenant)).segments;
    expect(ids(after)).toEqual(ids(segments));
    expect(after.find(({ key }) => key === 'a')).toMatchObject(changed);
  });

  test('definitions that the file lacks are removed, and get new ids when they return', async () => {
    const tenant = await newTenant();
    const embed = { key: 'e', title: 'E', type: 'card' } as const;
    const survey: SurveyItem = {
      key: 's',
      title: 'S',
      platform: 'web',
      modules: [{ key: 'm', type: 'nps', question: 'Q' }],
    };
    const all = { segments: [segmentItem('a')], surveys: [survey], embeds: [embed] };
    await apply(t, tenant, all);
    const before = await stored(tenant);
    const removed = await apply(t, tenant, {});
    expect(counts(removed)).toEqual({
      segments: [0, 0, 1, 0],
      surveys: [0, 0, 1, 0],
      embeds: [0, 0, 1, 0],
    });
    expect(removed.changes.segments.removed).toEqual(['a']);
    expect(await stored(tenant)).toEqual(noItems);
    await apply(t, tenant, all);
    const again = await stored(tenant);
    expect(withoutIds(again)).toEqual(withoutIds(before));
    for (const kind of ['segments', 'surveys', 'embeds'] as const) {
      expect(again[kind][0]?.id).toBeGreaterThan(before[kind][0]?.id ?? 0);
    }
    expect(again.surveys[0]?.modules[0]?.id).toBeGreaterThan(before.surveys[0]?.modules[0]?.id ?? 0);
  });

  test('modules of a survey keep their ids when they move or change, and new modules get new ids', async () => {
    const tenant = await newTenant();
    const survey = (...keys: string[]): SurveyItem => ({
      key: 's',
      title: 'S',
      platform: 'web',
      modules: keys.map((key) => ({ key, type: 'text', question: `${key} of ${keys.length}?` })),
    });
    const modules = async () => (await stored(tenant)).surveys[0]?.modules ?? [];
    await apply(t, tenant, { surveys: [survey('a', 'b', 'c', 'd')] });
    const first = ids(await modules());
    const applied = await apply(t, tenant, { surveys: [survey('d', 'x', 'b', 'a')] });
    expect(applied.changes.surveys.changed.map(({ fields }) => fields)).toEqual([['modules']]);
    const second = await modules();
    expect(second.map(({ key }) => key)).toEqual(['d', 'x', 'b', 'a']);
    expect(ids(second)).toEqual({ a: first['a'], b: first['b'], d: first['d'], x: expect.any(Number) });
    expect(Object.values(first)).not.toContain(ids(second)['x']);
    await apply(t, tenant, { surveys: [{ ...survey(), title: 'None' }] });
    expect(await modules()).toEqual([]);
  });

  test('a dry run of definitions reports the same changes and writes nothing', async () => {
    const tenant = await newTenant();
    await apply(t, tenant, sample);
    const wanted = {
      ...sample,
      embeds: [{ key: 'new', title: 'New', type: 'card' }, ...sample.embeds.slice(1)] as const,
      features: sample.features.map((item) => ({ ...item, display_name: `${item.display_name}!` })),
    };
    const before = await versions();
    const dry = await apply(t, tenant, wanted, { dryRun: true });
    expect(counts(dry)).toMatchObject({ embeds: [1, 0, 1, 2], features: [0, 3, 0, 0] });
    expect(await versions()).toEqual(before);
    expect((await apply(t, tenant, wanted)).changes).toEqual(dry.changes);
  });

  test('a file that lacks a protected segment is not applied at all, unless it is forced', async () => {
    const tenant = await newTenant();
    const guarded = segmentItem('guarded', { is_protected: true });
    await apply(t, tenant, { segments: [guarded, segmentItem('a')] });
    const before = await stored(tenant);
    for (const dryRun of [true, false]) {
      const applied = await apply(t, tenant, { segments: [segmentItem('b')] }, { dryRun });
      expect(applied.blockedBy).toEqual(['guarded']);
      expect(counts(applied)).toEqual({ segments: [1, 0, 2, 0] });
      expect(await stored(tenant)).toEqual(before);
    }
    const forced = await apply(t, tenant, { segments: [segmentItem('b')] }, { force: true });
    expect(forced.blockedBy).toEqual([]);
    expect(ids((await stored(tenant)).segments)).toEqual({ b: expect.any(Number) });
  });

  // proves: segments-made
  test('segments of the API stay when the file lacks them, and the file wins for a key in both, with a report', async () => {
    const tenant = await newTenant();
    const { environmentId } = tenant.environment;
    const make = (key: string) =>
      createSegment(t.system.db, environmentId, { key, title: `Of ${key}`, definition: { event: key } });
    await apply(t, tenant, { segments: [segmentItem('a')] });
    const mine = await make('mine');
    const both = await make('both');
    const file = { segments: [segmentItem('both', { title: 'Of both' })] };
    const dry = await apply(t, tenant, file, { dryRun: true });
    expect((await stored(tenant)).segments.slice(1)).toEqual([mine, both]);
    const applied = await apply(t, tenant, file);
    expect(applied).toEqual(dry);
    expect(applied.changes.segments).toMatchObject({ removed: ['a'], unchanged: 0 });
    expect(applied.changes.segments.changed[0]?.fields).toEqual(['made_by', 'definition']);
    expect((await stored(tenant)).segments).toEqual([
      mine,
      { ...segmentItem('both', { title: 'Of both' }), id: both.id },
    ]);
    expect(counts(await apply(t, tenant, file))).toEqual({ segments: [0, 0, 0, 1] });
    const exported = itemsOf(writeDefinitionsFile(withoutIds(await stored(tenant)), 'yaml'));
    expect(counts(await apply(t, tenant, exported))).toEqual({ segments: [0, 0, 0, 2] });
    expect((await stored(tenant)).segments[0]).toEqual(mine);
  });

  test('environments have definitions of their own, with the same keys', async () => {
    const one = await newTenant();
    const other = await newTenant();
    await apply(t, one, sample);
    await apply(t, other, sample);
    const first = await stored(one);
    const second = await stored(other);
    const both = [...first.segments, ...second.segments].map(({ id }) => id);
    expect(new Set(both).size).toBe(2 * sample.segments.length);
    await apply(t, one, {}, { force: true });
    expect(await stored(one)).toEqual(noItems);
    expect(await stored(other)).toEqual(second);
  });
});

describe('applies at the same time', () => {
  test('definitions that are applied at once from several files end as one of the files', async () => {
    const tenant = await newTenant();
    const files = ['x', 'y', 'z'].map((name) => ({
      ...noItems,
      segments: ['a', 'b', name].map((key) => segmentItem(key, { title: name })),
      features: ['f', name].map((key) => ({ key, display_name: name, data_type: 'feature' })),
    }));
    for (let round = 0; round < 10; round++) {
      await Promise.all(files.map((items) => apply(t, tenant, items)));
      const outcome = withoutIds(await stored(tenant));
      const name = outcome.segments[0]?.title;
      const file = files.find(({ segments }) => segments[0]?.title === name);
      expect(bySortedKeys(outcome, true)).toEqual(bySortedKeys(file ?? noItems, true));
    }
  });
});

/** Sorts items without an id by key, as the service returns them. */
function bySortedKeys(items: Definitions, segmentsToo = false): Definitions {
  const sort = <T extends { readonly key: string }>(list: readonly T[]): T[] =>
    list.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  return {
    ...items,
    segments: segmentsToo ? sort(items.segments) : items.segments,
    resource_center_modules: sort(items.resource_center_modules),
    checklists: sort(items.checklists),
    features: sort(items.features),
    event_retention: sort(items.event_retention),
  };
}
