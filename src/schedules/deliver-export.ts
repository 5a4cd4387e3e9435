import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, realpath, rename } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import type { ExportFile } from '../domain/export.ts';
import { requireExport } from '../export/inspect-exports.ts';
import type { FileRef } from '../files/file-store.ts';
import { noteDelivery, type RunClaim } from '../postgres/stores/schedule-runs.ts';
import type { ScheduleContext } from './context.ts';
import { SourceFailure } from './source-failure.ts';
import { isBelow } from './sources/local-files.ts';

/**
 * Copies the files of an export into a folder named by the due time, the manifest last: where it is, all is. Done again
 * it writes the same files.
 */
export async function deliverExport(
  context: ScheduleContext,
  claim: RunClaim,
  jobId: string,
  toDir: string,
  signal: AbortSignal,
): Promise<void> {
  const { files } = await requireExport(context, claim.environmentId, jobId);
  if (files.length === 0) throw new SourceFailure('job_expired', 'the files of the export are gone');
  const folder = await makeFolder(context.schedules.exportRoots, toDir, claim);
  for (const file of files) {
    signal.throwIfAborted();
    await copyFile(context, file, folder, signal);
  }
  await noteDelivery(context.db, claim, folder);
  context.log.info({ schedule: claim.name, job_id: jobId, files: files.length }, 'export delivered');
}

/** Told before there is an export, too: it would have been written for nobody. @throws SourceFailure */
export function findParent(roots: readonly string[], toDir: string): { parent: string; root: string } {
  const parent = resolve(roots[0] ?? '/', toDir);
  const root = roots.find((each) => each === parent || isBelow(each, parent));
  if (root !== undefined) return { parent, root };
  throw outside();
}

async function makeFolder(roots: readonly string[], toDir: string, claim: RunClaim): Promise<string> {
  const { parent, root } = findParent(roots, toDir);
  const name = claim.dueAt.toISOString().slice(0, 19).replaceAll(':', '');
  await mkdir(root, { recursive: true });
  const realRoot = await realpath(root);
  let folder = root;
  for (const part of relative(root, join(parent, `${claim.name}-${name}Z`)).split(sep)) {
    folder = join(folder, part);
    await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    // A link on the way would lead elsewhere: nothing is made behind it. One to nowhere has no real path.
    const real = await realpath(folder).catch(() => null);
    if (real === null || !isBelow(realRoot, real)) throw outside();
  }
  return folder;
}

function outside(): SourceFailure {
  return new SourceFailure('outside_roots', 'to_dir leads out of the folders of SCHEDULES_EXPORT_ROOTS');
}

const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;

async function copyFile(
  { files }: ScheduleContext,
  { filename, ref, sha256 }: ExportFile,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const [unfinished, finished] = [join(folder, `.${filename}.unfinished`), join(folder, filename)];
  const target = await open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o640);
  const hash = createHash('sha256');
  try {
    for await (const bytes of files.open(ref as FileRef) as AsyncIterable<Buffer>) {
      signal.throwIfAborted();
      hash.update(bytes);
      await target.writeFile(bytes);
    }
    await target.sync();
  } finally {
    await target.close();
  }
  if (hash.digest('hex') !== sha256) throw new Error(`${filename} is not what its export wrote`);
  await rename(unfinished, finished);
}
