import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/base/package-root.ts';

/** The folders of the core, each above those that it may import. */
const layers = [
  ...['base', 'domain', 'formats', 'files', 'postgres', 'tasks', 'queue', 'telemetry', 'http', 'cli'],
  ...[
    'lookups',
    'access',
    'ingest',
    'load',
    'export',
    'deletion',
    'jobs',
    'profiles',
    'console',
    'processes',
  ],
];

/** On their way into a folder of capabilities or of another layer. */
const moving = ['lake', 'personal', 'products', 'retention', 'rules', 'load/undo'];
const isMoving = (path: string): boolean => moving.some((each) => path.startsWith(`src/${each}/`));

const layerOf = (path: string): string | null =>
  isMoving(path) ? null : (/^src\/([^/]+)\//.exec(path)?.[1] ?? null);

test('every folder of the core is a layer, and imports only from those below it', () => {
  const files = readdirSync(join(packageRoot, 'src'), { recursive: true, encoding: 'utf8' })
    .map((file) => join('src', file))
    .filter((file) => /\.tsx?$/.test(file) && !/^src\/(capabilities|console\/client)\//.test(file));
  const folders = new Set(files.flatMap((file) => layerOf(file) ?? []));
  expect([...folders].toSorted()).toEqual(layers.toSorted());
  const upward = files.flatMap((from) => {
    const text = readFileSync(join(packageRoot, from), 'utf8');
    const imports = [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)];
    return imports.flatMap(([, path = '']) => {
      const of = normalize(join(dirname(from), path));
      const [own, other] = [layerOf(from), layerOf(of)];
      // The files beside the folders hold types of the whole, and the registry, which processes alone import.
      if (own === null || other === null || own === other) return [];
      return layers.indexOf(other) < layers.indexOf(own) ? [] : [`${from} imports ${of}`];
    });
  });
  expect(upward).toEqual([]);
});
