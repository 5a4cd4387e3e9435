import { type FileHandle, open } from 'node:fs/promises';
import type { LoadContext } from '../../load/context.ts';
import { exportRejects, type RejectsFormat } from '../../load/inspect-rejects.ts';
import { readRejectsSource } from '../../postgres/ledger/read-rejects.ts';

type Context = Pick<LoadContext, 'db'>;

const mostFiles = 1_000;

/** The format of the file they came from. */
export async function formatOfRejects(
  { db }: Context,
  environmentId: number,
  jobId: string,
): Promise<RejectsFormat> {
  const source = await readRejectsSource(db, environmentId, jobId);
  return source !== null && source.header === null ? 'ndjson' : 'csv';
}

/**
 * Writes all rejects of a load to `<stem>.<format>`, or `<stem>-2.<format>` and so on: a file that is there may be
 * half mended already. Those of a dry run are there to be looked at, and replace those of the one before. Returns the path.
 */
export async function writeRejectsFile(
  context: Context,
  environmentId: number,
  jobId: string,
  format: RejectsFormat,
  stem: string,
  dryRun: boolean,
): Promise<string> {
  const { path, file } = dryRun ? await replace(`${stem}.dry-run.${format}`) : await openNew(stem, format);
  try {
    for await (const bytes of exportRejects(context, environmentId, jobId, format))
      await file.appendFile(bytes);
  } finally {
    await file.close();
  }
  return path;
}

async function replace(path: string): Promise<{ path: string; file: FileHandle }> {
  return { path, file: await open(path, 'w') };
}

async function openNew(stem: string, extension: string): Promise<{ path: string; file: FileHandle }> {
  for (let number = 1; ; number++) {
    const path = `${stem}${number === 1 ? '' : `-${number}`}.${extension}`;
    try {
      return { path, file: await open(path, 'wx') };
    } catch (error) {
      const taken = error instanceof Error && 'code' in error && error.code === 'EEXIST';
      if (!taken || number >= mostFiles) throw error;
    }
  }
}
