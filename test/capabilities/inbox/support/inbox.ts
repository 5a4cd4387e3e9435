import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { waitFor } from '../../../support/wait-for.ts';

export interface Concluded {
  readonly outcome: 'done' | 'failed';
  readonly path: string;
  readonly receipt: Receipt;
  /**
   * Suffixes of the other files that belong to the concluded file and are stored beside it. One of
   * these files is the receipt.
   */
  readonly beside: readonly string[];
}

export interface Receipt {
  readonly file: string;
  readonly dropped_as: string;
  readonly outcome: string;
  readonly reasons: readonly {
    readonly error_code: string;
    readonly message: string;
    readonly details: string;
  }[];
  readonly job_id: string | null;
  readonly status: string;
  readonly duplicate_of: string | null;
  readonly counts: Readonly<Record<string, number>>;
  readonly rejects: { readonly count: number; readonly file: string | null };
  readonly [key: string]: unknown;
}

/** Drops a file as documented: writes it under a hidden name, then renames it. */
export async function drop(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const draft = join(dirname(path), `.${basename(path).slice(0, 40).replaceAll('\n', '')}.draft`);
  await writeFile(draft, content);
  await rename(draft, path);
}

export async function readConcluded(environment: string): Promise<Concluded[]> {
  const files: Concluded[] = [];
  for (const outcome of ['done', 'failed'] as const) {
    for (const day of await list(join(environment, outcome))) {
      const folder = join(environment, outcome, day);
      const names = await list(folder);
      for (const name of names.filter((entry) => entry.endsWith('.receipt.json'))) {
        const file = name.slice(0, -'.receipt.json'.length);
        if (!names.includes(file)) continue;
        const receipt = JSON.parse(await readFile(join(folder, name), 'utf8')) as Receipt;
        const otherFiles = names
          .filter((entry) => entry.startsWith(`${file}.`))
          .map((entry) => entry.slice(file.length));
        files.push({ outcome, path: join(folder, file), receipt, beside: otherFiles.sort() });
      }
    }
  }
  return files;
}

export async function concluded(environment: string, droppedAs: string, count = 1): Promise<Concluded[]> {
  return waitFor(
    `${droppedAs} to be concluded`,
    async () => {
      const files = (await readConcluded(environment)).filter(
        ({ receipt }) => receipt.dropped_as === droppedAs,
      );
      return files.length >= count ? files : null;
    },
    { everyMs: 40 },
  );
}

/** Returns the sorted names of the files in the folder, or [] if the folder does not exist. */
export async function list(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(() => [])).sort();
}
