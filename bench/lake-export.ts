import { type ExportRequest, everything, exportFormatFacts } from '../src/domain/export.ts';
import { EXPORT_PART_BYTES } from '../src/export/run-export.ts';
import { writeExport } from '../src/export/write/write-export.ts';
import type { openSystem } from '../src/processes/open-system.ts';

const noHistory = { requestId: null, origin: null, options: {}, optionsCut: false, phases: [] };

/**
 * Runs an export in this process instead of a worker. Uses gzip unless the format includes
 * compression.
 */
export function exportEvents(
  system: ReturnType<typeof openSystem>,
  environmentId: number,
  request: Pick<ExportRequest, 'format'> & Partial<ExportRequest>,
) {
  return writeExport(system, {
    environmentId,
    manifest: { jobId: 'bench', environmentName: 'bench', appToken: 'NX-00000000', history: noHistory },
    sessionName: 'sluice bench',
    segment: null,
    excludedSegments: [],
    splitBytes: EXPORT_PART_BYTES,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    onSnapshot: () => undefined,
    request: {
      ...everything,
      escapeFormulas: true,
      ...request,
      compression: exportFormatFacts[request.format].isPackedInside ? 'none' : 'gzip',
    },
  });
}

let most = 0;
/** Highest peak memory of all measurements so far, in MiB. */
export const mostMemory = (): number => most;

/**
 * Runs `work`. Returns its result, the elapsed seconds, and the processor seconds and peak memory
 * (in MiB) of this process.
 */
export async function measure<T>(
  work: () => Promise<T>,
): Promise<{ seconds: number; cpu: number; peak: number; done: T }> {
  let peak = 0;
  const sample = (): void => {
    peak = Math.max(peak, process.memoryUsage.rss());
  };
  const timer = setInterval(sample, 20);
  const began = performance.now();
  const before = process.cpuUsage();
  try {
    const result = await work();
    sample();
    const { user, system } = process.cpuUsage(before);
    const seconds = (performance.now() - began) / 1000;
    most = Math.max(most, Math.round(peak / 2 ** 20));
    return { seconds, cpu: (user + system) / 1e6, peak: Math.round(peak / 2 ** 20), done: result };
  } finally {
    clearInterval(timer);
  }
}
