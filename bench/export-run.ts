import type { Body } from './export-baseline.ts';
import type { Service } from './service.ts';

interface ExportJob {
  readonly job_id: string;
  readonly status: string;
  readonly failure?: { readonly message: string } | null;
  readonly presigned_urls: readonly ExportedFile[];
}

export interface ExportedFile {
  readonly filename: string;
  readonly url: string;
  readonly bytes: number;
  readonly rows: number;
}

export interface Finished {
  /** From the request to the completed job. */
  readonly seconds: number;
  /** Of all files. */
  readonly rows: number;
  readonly bytes: number;
  readonly files: readonly ExportedFile[];
}

/** Asks for an export and waits until it is completed. */
export async function exportOnce(service: Service, body: Body): Promise<Finished> {
  const exports = '/api/v1/analytics/exports';
  const startedAt = performance.now();
  const response = await service.fetch(exports, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (response.status !== 201) throw new Error(`${response.status}: ${await response.text()}`);
  const { job_id } = (await response.json()) as ExportJob;
  for (;;) {
    const job = (await (await service.fetch(`${exports}/jobs/${job_id}`)).json()) as ExportJob;
    if (job.status === 'completed') {
      const files = job.presigned_urls;
      const [rows, bytes] = [sum(files.map((file) => file.rows)), sum(files.map((file) => file.bytes))];
      return { seconds: (performance.now() - startedAt) / 1_000, rows, bytes, files };
    }
    if (['failed', 'cancelled'].includes(job.status))
      throw new Error(`the export ${job.status}: ${job.failure?.message}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
