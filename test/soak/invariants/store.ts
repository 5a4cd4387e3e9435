import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { createFileSystemStore } from '../../../src/files/file-system.ts';
import { some } from '../actors/actor.ts';
import type { Invariant, Scene } from './invariant.ts';

/** Looked at when the service has been stopped, and what processes that were killed left behind has been swept. */
export const storeInvariants: readonly Invariant[] = [
  {
    name: 'every file that the ledger names is there',
    async look(scene) {
      const { named, stored } = await compare(scene);
      const missing = [...named].filter((ref) => !stored.has(ref));
      return missing.length > 0 ? [`${missing.length} files are missing: ${some(missing)}`] : [];
    },
  },
  {
    name: 'no file without a row',
    async look(scene) {
      const { named, stored } = await compare(scene);
      // Of those whose receiver was lost the ledger knows too; they go an hour later.
      const received = await scene.site.sql<{ ref: string }>(
        'select file_ref as ref from sluice.received_files',
      );
      for (const { ref } of received) stored.delete(ref);
      const orphans = [...stored].filter((ref) => !named.has(ref) && !ref.startsWith('tmp/'));
      return orphans.length > 0 ? [`${orphans.length} files are nobody's: ${some(orphans)}`] : [];
    },
  },
  {
    name: 'no temporary file after a sweep',
    async look({ site }) {
      // What the workers do an hour later.
      await createFileSystemStore(site.filesDir).sweepTemporary(0);
      const left = (await filesBelow(site.filesDir)).filter(
        (ref) => ref.startsWith('tmp/') || ref.endsWith('.part'),
      );
      return left.length > 0 ? [`${left.length} temporary files are left: ${some(left)}`] : [];
    },
  },
];

async function compare({ site }: Scene): Promise<{ named: ReadonlySet<string>; stored: Set<string> }> {
  const rows = await site.sql<{ ref: string }>(
    `select file_ref as ref from sluice.loads where file_ref is not null
     union all select file_ref from sluice.export_files`,
  );
  return { named: new Set(rows.map(({ ref }) => ref)), stored: new Set(await filesBelow(site.filesDir)) };
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}
