import { type Static, Type } from 'typebox';
import { type ExportFile, type ExportRequest, exportFormats, type FileDataset } from '../../domain/export.ts';
import { readPackage } from '../../package-root.ts';

export const manifestName = 'manifest.json';

/** The files for an environment's settings in an export of everything. */
export const setupNames = ['definitions.yaml', 'mappings.json', 'subscriptions.json'] as const;

/** Whose export it is. */
export interface JobFacts {
  readonly jobId: string;
  readonly environmentName: string;
  readonly appToken: string;
}

export interface ManifestFacts extends JobFacts {
  readonly snapshotAt: Date;
  readonly datasets: readonly DatasetSummary[];
}

export interface DatasetSummary {
  readonly dataset: FileDataset;
  readonly rows: number;
  /** Hex, see `ContentHash`; null where there is none. */
  readonly contentSha256: string | null;
}

/** Names that we give, and nothing that leads to another directory. */
export const exportedFileName = new RegExp(`^[a-z]+(?:-\\d{4,})?\\.(${exportFormats.join('|')})(?:\\.gz)?$`);

const count = Type.Integer({ minimum: 0 });
const sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });

const setupFile = Type.Object({ filename: Type.Enum([...setupNames]), bytes: count, sha256 });
export type SetupFile = Static<typeof setupFile>;

/** manifest.json. */
export const manifest = Type.Object({
  application: Type.Object({ name: Type.String(), version: Type.String() }),
  environment: Type.Object({ name: Type.String(), app_token: Type.String() }),
  job_id: Type.String(),
  snapshot_at: Type.String(),
  request: Type.Object({}),
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
  /** Only in the export of everything. */
  setup: Type.Optional(Type.Array(setupFile)),
});
export type Manifest = Static<typeof manifest>;

export function createManifest(
  facts: ManifestFacts,
  request: ExportRequest,
  files: readonly ExportFile[],
): Manifest {
  const { name, version } = readPackage();
  return {
    application: { name, version },
    environment: { name: facts.environmentName, app_token: facts.appToken },
    job_id: facts.jobId,
    snapshot_at: facts.snapshotAt.toISOString(),
    request: describeRequest(request),
    datasets: facts.datasets.map(({ dataset, rows, contentSha256 }) => ({
      dataset,
      rows,
      content_sha256: contentSha256,
    })),
    files: files.map(({ filename, dataset, rows, bytes, sha256 }) => ({
      filename,
      dataset,
      rows,
      bytes,
      sha256,
    })),
  };
}

/** In the words of the API. */
function describeRequest(request: ExportRequest): object {
  return {
    from: request.from,
    to: request.to,
    layout: request.layout,
    datasets: request.datasets,
    event_kinds: request.eventKinds,
    event_names: request.eventNames,
    user_id: request.userIds,
    company_id: request.companyIds,
    segment_id: request.segmentId,
    exclusions: request.exclusions.map(({ kind, pattern }) => `${kind}:${pattern}`),
    format: request.format,
    compression: request.compression,
    escape_formulas: request.escapeFormulas,
  };
}
