import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Static, Type } from 'typebox';
import { Fault, inputError } from '../base/errors.ts';
import { READ_BYTES } from '../base/limits.ts';
import { readPackage } from '../base/package-root.ts';
import { compileSchema } from '../base/validation.ts';
import {
  datasets,
  type ExportFile,
  type ExportFormat,
  type ExportRequest,
  exportFormats,
  type FileDataset,
  isExportFormat,
  toGivenRequest,
} from '../domain/export.ts';
import { noRejects, type RunFacts, renderRun } from '../http/render.ts';
import type { ExportCounts } from '../http/run.ts';
import type { JobHistory } from '../tasks/job-store.ts';
import type { Export } from './store.ts';

export const manifestName = 'manifest.json';

export const setupName = 'definitions.yaml';

export interface JobFacts {
  readonly jobId: string;
  readonly environmentName: string;
  readonly appToken: string;
  readonly history: JobHistory;
}

export interface ManifestFacts extends JobFacts {
  readonly snapshotAt: Date;
  readonly endedAt: Date;
  readonly cursor: string;
  readonly eventsKeptFrom: string | null;
  readonly unfinishedLoads: readonly string[];
  readonly datasets: readonly DatasetSummary[];
}

export interface DatasetSummary {
  readonly dataset: FileDataset;
  readonly rows: number;
  /** Content hash (see `ContentHash`) in hexadecimal digits, or `null` if the dataset has none. */
  readonly contentSha256: string | null;
}

/** Form of the file names in a manifest. A name of this form cannot lead outside the folder. */
const exportedFileName = new RegExp(`^[a-z]+(?:-\\d{4,})?\\.(${exportFormats.join('|')})(?:\\.gz)?$`);

const count = Type.Integer({ minimum: 0 });
const sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });

const setupFile = Type.Object({ filename: Type.Literal(setupName), bytes: count, sha256 });
export type SetupFile = Static<typeof setupFile>;

const manifest = Type.Object({
  application: Type.Object({ name: Type.String(), version: Type.String() }),
  environment: Type.Object({ name: Type.String(), app_token: Type.String() }),
  job_id: Type.String(),
  snapshot_at: Type.String(),
  /** Value of `since` for the next export. */
  cursor: Type.String(),
  /**
   * All events from this instant on are stored. Set only if the requested range begins before this
   * instant.
   */
  events_kept_from: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  /**
   * Accepted loads that had not ended at the snapshot. The files may contain a part of their rows.
   */
  unfinished_loads: Type.Optional(Type.Array(Type.String())),
  datasets: Type.Array(
    Type.Object({
      dataset: Type.String(),
      rows: count,
      content_sha256: Type.Union([sha256, Type.Null()]),
    }),
  ),
  files: Type.Array(
    Type.Object({
      filename: Type.String({ pattern: exportedFileName.source }),
      dataset: Type.String(),
      rows: count,
      bytes: count,
      sha256,
    }),
  ),
  /** Definitions of the environment. Only an export with `--everything` has them. */
  setup: Type.Optional(Type.Array(setupFile)),
});
export type Manifest = Static<typeof manifest>;

export function createManifest(
  facts: ManifestFacts,
  request: ExportRequest,
  files: readonly ExportFile[],
): Manifest {
  const { name, version } = readPackage();
  const { jobId, cursor, history, snapshotAt, endedAt } = facts;
  const job = { jobId, type: 'export', status: 'completed', written: files, cursor, failure: null } as const;
  const run = renderExportRun(job, {
    ...history,
    // The whole request, in a form that can be sent again.
    options: { ...history.options, ...toGivenRequest(request) },
    optionsCut: false,
    phases: [...history.phases, { phase: 'snapshot', at: snapshotAt }, { phase: 'completed', at: endedAt }],
  });
  return {
    ...run,
    application: { name, version },
    environment: { name: facts.environmentName, app_token: facts.appToken },
    job_id: jobId,
    snapshot_at: snapshotAt.toISOString(),
    cursor,
    events_kept_from: facts.eventsKeptFrom,
    unfinished_loads: [...facts.unfinishedLoads],
    datasets: facts.datasets.map(({ contentSha256, ...counted }) => {
      return { ...counted, content_sha256: contentSha256 };
    }),
  };
}

interface Difference {
  readonly filename: string;
  readonly problem: string;
}

export interface Verification {
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
  readonly differences: readonly Difference[];
}

/**
 * Compares the files in a folder with their manifest. Needs no database. Rows are not counted,
 * because the sha256 already proves their number.
 * @throws InputError if the manifest cannot be read
 */
export async function verifyExport(directory: string): Promise<Verification> {
  const { files, setup = [] } = await readManifest(directory);
  const entries = [...files, ...setup];
  const names = new Set([manifestName, ...entries.map(({ filename }) => filename)]);
  const differences: Difference[] = (await readdir(directory))
    .filter((name) => !names.has(name))
    .sort()
    .map((filename) => ({ filename, problem: 'is not in the manifest' }));
  for (const file of entries) {
    const problem = await findProblem(join(directory, file.filename), file);
    if (problem !== null) differences.push({ filename: file.filename, problem });
  }
  return {
    files: files.length,
    rows: files.reduce((sum, { rows }) => sum + rows, 0),
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    differences,
  };
}

async function findProblem(
  path: string,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
): Promise<string | null> {
  const stats = await lstat(path).catch(() => null);
  if (stats === null) return 'is missing';
  if (!stats.isFile()) return 'is no regular file';
  if (stats.size !== bytes) return `has ${stats.size} bytes, not ${bytes}`;
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: READ_BYTES }), hash);
  return hash.digest('hex') === sha256 ? null : 'has another sha256: it was changed or damaged';
}

const findManifestProblems = compileSchema(manifest);

/**
 * Reads the manifest in a folder.
 * @throws InputError if the file is missing, is not a manifest, or lists file names that exports
 * never write
 */
export async function readManifest(directory: string): Promise<Manifest> {
  const path = join(directory, manifestName);
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw Object.assign(inputError('invalid_field', `${path} cannot be read`), { cause });
  });
  const value = parse(text, path);
  const [problem] = findManifestProblems(value);
  if (problem !== undefined) throw refused(`${problem.details}: ${problem.message}`);
  const listing = value as Manifest;
  if (new Set(listing.files.map(({ filename }) => filename)).size === listing.files.length) return listing;
  throw refused('files: the same file is listed twice');
}

function parse(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw Object.assign(inputError('invalid_json', `${path} is not JSON`), { cause });
  }
}

function refused(details: string): Error {
  return inputError('invalid_field', 'This is no manifest of an export', details);
}

export function formatOf({ filename }: Pick<Manifest['files'][number], 'filename'>): ExportFormat {
  const name = exportedFileName.exec(filename)?.[1] ?? '';
  if (!isExportFormat(name)) throw new Fault(`${filename} is no name of an exported file`);
  return name;
}

/**
 * Facts that a manifest states about an export. The files of the export may already have expired.
 */
type ExportFacts = Pick<Export, 'written'> &
  Pick<RunFacts<ExportCounts>, 'jobId' | 'type' | 'status' | 'cursor' | 'failure'>;

export function renderExportRun({ written, ...job }: ExportFacts, history: JobHistory) {
  // The document lists the files in the order of `datasets`, and the stream last.
  const files = [...datasets, 'stream'].flatMap((dataset) =>
    written.filter((file) => file.dataset === dataset),
  );
  const rowsOf = (dataset: ExportFile['dataset']) =>
    files.reduce((sum, file) => sum + (file.dataset === dataset ? file.rows : 0), 0);
  const counts = {
    written: files.reduce((sum, { rows }) => sum + rows, 0),
    users: rowsOf('users'),
    companies: rowsOf('companies'),
    events: rowsOf('events'),
    stream: rowsOf('stream'),
  };
  return renderRun({ ...job, ...history, sources: [], files, counts, rejects: noRejects });
}
