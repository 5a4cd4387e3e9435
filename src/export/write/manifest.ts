import type { ExportFile, ExportRequest, FileDataset } from '../../domain/export.ts';
import { readPackage } from '../../package-root.ts';

export const manifestName = 'manifest.json';

/** The files for an environment's settings in an export of everything. */
export const setupNames = ['definitions.yaml', 'mappings.json', 'subscriptions.json'] as const;

export interface SetupFile {
  readonly filename: (typeof setupNames)[number];
  readonly bytes: number;
  readonly sha256: string;
}

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

/** manifest.json. */
export interface Manifest {
  readonly application: { readonly name: string; readonly version: string };
  readonly environment: { readonly name: string; readonly app_token: string };
  readonly job_id: string;
  readonly snapshot_at: string;
  readonly request: object;
  readonly datasets: readonly {
    readonly dataset: FileDataset;
    readonly rows: number;
    readonly content_sha256: string | null;
  }[];
  readonly files: readonly {
    readonly filename: string;
    readonly dataset: string;
    readonly rows: number;
    readonly bytes: number;
    readonly sha256: string;
  }[];
  /** Only in the export of everything. */
  readonly setup?: readonly SetupFile[];
}

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
