import { mkdir, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Random } from '../random.ts';
import { createBatch, renderBatch } from './batch.ts';
import type { ProfileSpace } from './profile-space.ts';
import { Versions } from './versions.ts';

/** Something that a schedule loads from, and that changes. */
export interface ScheduledSource {
  readonly versions: Versions;
  change(): Promise<void>;
}

const keys = 1_000;
const rows = 1_500;
/** So many that some stand there from one run to the next. */
const filesMost = 12;

/** A folder to which files are added, and in which they are overwritten. */
export function createScheduledFiles(folder: string, space: ProfileSpace, random: Random): ScheduledSource {
  const versions = new Versions();
  const paths: string[] = [];

  function pickPath(): string {
    if (paths.length > 0 && (paths.length >= filesMost || random.chance(0.5))) return random.pick(paths);
    const path = join(folder, `${space.prefix}${paths.length}.${random.pick(['csv', 'ndjson'])}`);
    paths.push(path);
    return path;
  }

  return {
    versions,
    async change() {
      const path = pickPath();
      const batch = createBatch(space, path.endsWith('.csv') ? 'csv' : 'ndjson', {
        random,
        rows: random.integer(1, rows),
        keys,
        mark: `${space.prefix}${versions.size}`,
      });
      const unfinished = join(dirname(folder), 'unfinished');
      await mkdir(folder, { recursive: true });
      await writeFile(unfinished, renderBatch(batch, { gzip: false }).bytes);
      const { size, mtimeNs } = await stat(unfinished, { bigint: true });
      versions.add(path, `${size}:${mtimeNs}`, batch);
      await rename(unfinished, path);
      versions.stands(path);
    },
  };
}
