import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../../src/base/package-root.ts';
import { changesByList } from '../../../src/lookups/apply-definitions.ts';
import { definitionsFileSchema } from '../../../src/lookups/definitions.ts';
import { readDefinitions, withoutIds } from '../../../src/lookups/store.ts';
import { capabilities } from '../../../src/registry.ts';
import { apply, itemsOf } from '../../support/servers/definitions.ts';
import { systemOfFile } from '../../support/servers/system.ts';

const t = await systemOfFile();
const lists = await Promise.all(capabilities.flatMap(({ definitions }) => definitions?.() ?? []));

/** A valid item for each list, by the name of the list. */
const samples: Readonly<Record<string, string>> = {
  lake_columns: '[{ key: plan, type: string }]',
  access: '[{ key: team, value: data-team, scopes: [read, export] }]',
};

test('the published schema is the schema of the core with the lists of all capabilities', () => {
  const text = readFileSync(join(packageRoot, 'docs/schemas/definitions.schema.json'), 'utf8');
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(definitionsFileSchema(lists))));
});

test('each list of a capability is stored, changed and removed as its file says, and not elsewhere', async () => {
  const other = await t.addEnvironment('other');
  expect(lists.map(({ name }) => name)).toEqual(Object.keys(samples));
  for (const { name } of lists) {
    const items = itemsOf(`${name}: ${samples[name]}`, lists);
    const applied = await apply(t, t, items, { lists });
    expect(Object.fromEntries(changesByList(applied.changes))[name]?.added).toHaveLength(1);
    const stored = await readDefinitions(t.system.db, t.environment.environmentId, lists);
    expect(withoutIds(stored)).toEqual(items);
    const again = await apply(t, t, items, { lists });
    expect(Object.fromEntries(changesByList(again.changes))[name]).toMatchObject({
      unchanged: 1,
      changed: [],
    });
    await apply(t, other, itemsOf('segments: []', lists), { lists });
    expect(withoutIds(await readDefinitions(t.system.db, t.environment.environmentId, lists))).toEqual(items);
    const removed = await apply(t, t, itemsOf('segments: []', lists), { lists });
    expect(Object.fromEntries(changesByList(removed.changes))[name]?.removed).toHaveLength(1);
  }
});

test('a list of a capability is refused by a reader without the capability', () => {
  expect(() => itemsOf(`lake_columns: ${samples['lake_columns']}`)).toThrow('lake_columns is unknown');
});
