import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { System } from '../../../src/context.ts';
import { datasets, type ExportRequest } from '../../../src/domain/export.ts';
import type { SegmentTest } from '../../../src/export/filter.ts';
import {
  type SnapshotFacts,
  type WriteExportContext,
  type WrittenExport,
  writeExport,
} from '../../../src/export/write/write-export.ts';
import type { FileRef } from '../../../src/files/file-store.ts';

export type ExportContext = Pick<System, 'pool' | 'files' | 'log'> & WriteExportContext;

export interface ExportOptions extends Partial<ExportRequest> {
  readonly segment?: SegmentTest | null;
  readonly excludedSegments?: readonly SegmentTest[];
  readonly splitBytes?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (rows: number, bytes: number) => void;
  readonly onSnapshot?: (facts: SnapshotFacts) => void | Promise<void>;
}

const noHistory = { requestId: null, origin: null, options: {}, optionsCut: false, phases: [] };

/** Exports an environment. Default format: uncompressed NDJSON. */
export function exportAll(
  context: ExportContext,
  environmentId: number,
  options: ExportOptions = {},
): Promise<WrittenExport> {
  const { segment, excludedSegments, splitBytes, signal, onProgress, onSnapshot, ...request } = options;
  return writeExport(context, {
    environmentId,
    manifest: {
      jobId: 'the job',
      environmentName: 'its environment',
      appToken: 'NX-00000000',
      history: noHistory,
    },
    sessionName: 'sluice test',
    segment: segment ?? null,
    excludedSegments: excludedSegments ?? [],
    splitBytes: splitBytes ?? 1e9,
    signal: signal ?? new AbortController().signal,
    onProgress: onProgress ?? (() => undefined),
    onSnapshot: onSnapshot ?? (() => undefined),
    request: { ...everything, ...request },
  });
}

export const everything: ExportRequest = {
  from: null,
  to: null,
  since: null,
  includeRemoved: false,
  waitForLoads: false,
  layout: 'datasets',
  datasets,
  eventKinds: [],
  eventNames: [],
  userIds: [],
  companyIds: [],
  options: {},
  exclusions: [],
  format: 'ndjson',
  compression: 'none',
  escapeFormulas: true,
};

/** Returns the stored bytes of each file, by file name. */
export async function storedBytes(
  { files }: ExportContext,
  written: WrittenExport,
): Promise<Record<string, Buffer>> {
  const entries = written.files.map(async ({ filename, ref, bytes }) => {
    return [filename, await files.readRange(ref as FileRef, 0, bytes)] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** Returns the decompressed text of each file, by file name. */
export async function texts(context: ExportContext, written: WrittenExport): Promise<Record<string, string>> {
  const stored = await storedBytes(context, written);
  return Object.fromEntries(
    Object.entries(stored).map(([name, bytes]) => [
      name,
      (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8'),
    ]),
  );
}

export function records(text = ''): Record<string, unknown>[] {
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new Error('the last line has no end');
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Returns the content_sha256 that the manifest lists for each dataset. */
export async function contentHashes(
  context: ExportContext,
  written: WrittenExport,
): Promise<Record<string, string | null>> {
  const manifest = JSON.parse((await texts(context, written))['manifest.json'] ?? '') as {
    datasets: { dataset: string; content_sha256: string | null }[];
  };
  return Object.fromEntries(manifest.datasets.map((each) => [each.dataset, each.content_sha256]));
}

/** Writes the files of an export to a directory, as a download would. Calls `work` with it. */
export async function inDirectory<T>(
  context: ExportContext,
  written: WrittenExport,
  work: (directory: string) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-export-'));
  try {
    for (const [name, bytes] of Object.entries(await storedBytes(context, written))) {
      await writeFile(join(directory, name), bytes);
    }
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
